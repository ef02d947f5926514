"""Where a DynamoDB store is: the parts of a URL such as ``dynamodb://people?region=eu-central-1``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from threadline.kernel.errors import InvalidSetting, InvalidValue
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import SECOND, parse_duration
from threadline.settings import without_secret

SCHEME = "dynamodb"
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_OPTIONS = ("endpoint", "expire", "region", "streams")


class Address(NamedTuple):
    """One table of one account, and how it is used."""

    table: str
    region: str = ""
    """Empty: what the AWS configuration of this machine says."""
    endpoint: str = ""
    """Empty: AWS itself. Otherwise the address of a server that speaks its protocol."""
    streams: bool = True
    """Whether the table's stream is read where that is cheaper than reading the table again."""
    expire: Mapping[str, int] = {}
    """Tables of the port whose items go away by themselves, and after how many seconds."""


def parse(url: str) -> Address:
    """The address that a URL names. Raises `InvalidSetting` that says what is wrong with it."""
    parts = urlsplit(url)
    table = parts.netloc
    if parts.scheme != SCHEME or parts.path.strip("/") or _TABLE.fullmatch(table) is None:
        raise InvalidSetting(
            f"store: {without_secret(url)!r:.200} is not the URL of a DynamoDB table; write it like dynamodb://people?region=…"
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise InvalidSetting(f"store: {name!r} is not an option of a DynamoDB store; {suggestion(name, _OPTIONS)}")
    if options.get("streams", "on") not in ("on", "off"):
        raise InvalidSetting(f"store: streams={options['streams']} must be on or off")
    return Address(
        table,
        options.get("region", ""),
        options.get("endpoint", "").rstrip("/"),
        options.get("streams", "on") == "on",
        _lifetimes(options.get("expire", "")),
    )


def _lifetimes(text: str) -> dict[str, int]:
    """``rejected:90d,rejected_time:90d`` as seconds by table."""
    lifetimes = {}
    for part in filter(None, text.split(",")):
        table, _, duration = part.partition(":")
        try:
            lifetimes[table] = parse_duration(duration) // SECOND
        except InvalidValue as error:
            raise InvalidSetting(f"store: expire={part}: {error}") from None
    return lifetimes
