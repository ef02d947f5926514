"""What settings need that only an extra installs: named when definitions are checked and when a server starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import missing
from threadline.settings.declared import Settings


class _Part(NamedTuple):
    setting: str
    module: str
    named: str
    """What its distribution is called."""
    extra: str
    is_needed: Callable[[Any], bool] = bool
    """Of a value of the setting."""


def _begins(start: str) -> Callable[[Any], bool]:
    return lambda value: str(value or "").startswith(start)


PARTS = (
    _Part("store", "psycopg", "psycopg", "postgres", _begins("postgres")),
    _Part("store", "boto3", "boto3", "aws", _begins("dynamodb")),
    _Part("cache", "redis", "redis", "redis"),
    _Part("jwt_secret", "joserfc", "joserfc", "jwt"),
    _Part("jwt_keys", "joserfc", "joserfc", "jwt"),
    _Part("tracing", "opentelemetry", "opentelemetry-sdk", "otel"),
    _Part("lake", "pyarrow", "pyarrow", "lake"),
    *(_Part(name, "boto3", "boto3", "aws", _begins("s3://")) for name in ("lake", "iceberg_warehouse", "exports")),
    *(_Part(name, "boto3", "boto3", "aws") for name in ("ingestion_queue", "memory_queue", "feature_queue")),
)
"""Setting by setting; the definitions name theirs themselves."""


def lacking(settings: Settings) -> list[str]:
    """What each setting needs that is not installed, as sentences."""
    needed = ((part, missing(part.module, part.named, part.extra)) for part in PARTS)
    return [
        f"the setting `{part.setting}` {text}"
        for part, text in needed
        if text and part.is_needed(getattr(settings, part.setting))
    ]


def refuse_lacking(settings: Settings) -> None:
    """Raise `InvalidSetting` with everything that is not installed; nothing happens if nothing is."""
    if sentences := lacking(settings):
        raise InvalidSetting("; ".join(sentences))
