"""Where webhooks go: destinations, read from the section ``destinations``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zlib import crc32

import yaml

from threadline.capabilities.definitions import Definitions, Document, Plain
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import (
    DESTINATION_PAYLOAD_NAMES_MAX,
    DESTINATION_SECRETS_MAX,
    DESTINATIONS_MAX,
    WEBHOOK_URL_LENGTH_MAX,
    WEBHOOKS_AT_ONCE_MAX,
)
from threadline.kernel.section import Section
from threadline.kernel.sender import DESTINATION_FAILURES_MAX, Lane
from threadline.kernel.time import DAY, SECOND, parse_duration

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TIMEOUT_MAX = 10 * SECOND
"""A dispatcher's lease has at least 15 seconds left when it sends: within these an answer counts."""
TIMEOUT = 5 * SECOND
GIVE_UP = 3 * DAY
GIVE_UP_MAX = 30 * DAY
AT_ONCE = 4

URL_LANES = 4
"""Lanes shared by calls of addresses that rules name themselves."""
_SECRET = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_DURATION = {"type": "string", "examples": ["5s", "1d12h"]}
_T = TypeVar("_T")

SECTION = Section(
    name="destinations",
    schema={
        "type": "object",
        "description": "Where webhooks go, by name.",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "maxProperties": DESTINATIONS_MAX,
        "additionalProperties": {
            "type": "object",
            "properties": {
                "url": {"type": "string", "maxLength": WEBHOOK_URL_LENGTH_MAX},
                "secrets": {
                    "type": "array", "items": {"type": "string", "pattern": f"^{_SECRET.pattern}$"},
                    "maxItems": DESTINATION_SECRETS_MAX,
                },
                "timeout": _DURATION,
                "give_up_after": _DURATION,
                "at_once": {"type": "integer", "minimum": 1, "maximum": WEBHOOKS_AT_ONCE_MAX},
                "payload": {
                    "type": "array", "items": {"type": "string"}, "maxItems": DESTINATION_PAYLOAD_NAMES_MAX,
                },
                "description": {"type": "string"},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    },
)  # fmt: skip


@dataclass(frozen=True)
class Destination:
    """A declared destination."""

    name: str
    url: str
    secrets: tuple[str, ...] = ()
    """Names of environment variables, the newest secret first; each signs, so that a receiver can change over."""
    timeout_seconds: float = TIMEOUT / SECOND
    give_up_seconds: float = GIVE_UP / SECOND
    at_once: int = AT_ONCE
    payload: tuple[str, ...] | None = None
    """The members of a payload that may go there; None: all."""
    description: str = ""
    place: str = field(default="", compare=False)
    """File and line of the declaration, for messages."""

    @property
    def lane(self) -> Lane:
        """Its queue."""
        return Lane(self.name, self.at_once, self.give_up_seconds, DESTINATION_FAILURES_MAX, self)


def url_lanes() -> tuple[Lane, ...]:
    """The queues of calls to addresses that rules name themselves. Several hosts share one, so none of them rests: the
    sender leaves alone the hosts that fail."""
    return tuple(Lane(f"url.{number}", AT_ONCE, GIVE_UP / SECOND) for number in range(URL_LANES))


def lane_of(call: Mapping[str, Any]) -> str:
    """The lane of a call: its destination's, or that of its address."""
    if "destination" in call:
        return str(call["destination"])
    host = urlsplit(call["url"]).netloc if _is_url(call["url"]) else ""
    return f"url.{crc32(host.encode('utf-8', 'replace')) % URL_LANES}"


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def read_destinations(definitions: Definitions) -> tuple[Destination, ...]:
    """The declared destinations by name. Problems are noted in the documents."""
    found: dict[str, Destination] = {}
    for document, _, value in definitions.section(SECTION.name):
        for name, (key, node) in document.mapping(value, "`destinations`").items():
            if not NAME.fullmatch(name):
                text = f"{name[:80]!r} is not a valid destination name; use lower-case letters, digits, - and _"
                document.fail(key, text)
            elif name in found:
                document.fail(key, f"destination {name!r} is already declared at {found[name].place}; keep one")
            else:
                before = len(document.problems)
                destination = _Reader(document, name, key, node).destination()
                if destination is not None and len(document.problems) == before:
                    found[name] = destination
    if len(found) > DESTINATIONS_MAX:
        definitions.problems.append(
            f"{len(found)} destinations are declared, at most {DESTINATIONS_MAX} are allowed; remove some"
        )
    return tuple(found[name] for name in sorted(found))


class _Reader:
    """One destination; each mistake is noted where it stands."""

    def __init__(self, document: Document, name: str, key: yaml.Node, node: yaml.Node) -> None:
        self._document = document
        self._name = name
        self._key = key
        self._keys = document.mapping(node, f"destination {name!r}")
        self._plain = Plain(document, "destination", 1_000, 4)

    def destination(self) -> Destination | None:
        """The destination; None if it has no address."""
        allowed = SECTION.schema["additionalProperties"]["properties"]
        self._document.known(self._keys, allowed, f"destination {self._name!r}")
        if "url" not in self._keys:
            self._document.fail(self._key, f"destination {self._name!r} needs `url`: where calls go")
            return None
        return Destination(
            self._name,
            self._read("url", _url, ""),
            self._read("secrets", _secrets, ()),
            self._read("timeout", lambda value: _duration(value, TIMEOUT_MAX), TIMEOUT / SECOND),
            self._read("give_up_after", lambda value: _duration(value, GIVE_UP_MAX), GIVE_UP / SECOND),
            self._read("at_once", _at_once, AT_ONCE),
            self._read("payload", _names, None),
            self._read("description", _text, ""),
            self._document.place(self._key),
        )

    def _read(self, name: str, read: Callable[[Any], _T], default: _T) -> _T:
        if name not in self._keys:
            return default
        node = self._keys[name][1]
        try:
            return read(self._plain.value(node, (name,)))
        except InvalidValue as error:
            self._document.fail(node, f"`{name}` {error}")
            return default


def _url(value: Any) -> str:
    if type(value) is not str or len(value) > WEBHOOK_URL_LENGTH_MAX or not _is_url(value):
        raise InvalidValue("must be an address that begins with https://, such as https://crm.example.com/hooks")
    if "@" in urlsplit(value).netloc:
        raise InvalidValue("contains a password; remove it, and sign with `secrets` instead")
    return value


def _secrets(value: Any) -> tuple[str, ...]:
    matches = [_SECRET.fullmatch(each) if type(each) is str else None for each in value] if type(value) is list else []
    if not matches or len(matches) > DESTINATION_SECRETS_MAX or None in matches:
        raise InvalidValue("must name environment variables, such as [env:CRM_SECRET]: secrets stay out of files")
    return tuple(match[1] for match in matches if match is not None)


def _duration(value: Any, most: int) -> float:
    size = parse_duration(value) if type(value) is str else 0
    if not 0 < size <= most:
        raise InvalidValue(f"must be a duration of at most {most // SECOND:,} seconds, such as 5s")
    return size / SECOND


def _at_once(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= WEBHOOKS_AT_ONCE_MAX:
        raise InvalidValue(f"must be a whole number from 1 to {WEBHOOKS_AT_ONCE_MAX}")
    return value


def _names(value: Any) -> tuple[str, ...] | None:
    if type(value) is not list or len(value) > DESTINATION_PAYLOAD_NAMES_MAX or {type(each) for each in value} - {str}:
        raise InvalidValue(f"must be a list of at most {DESTINATION_PAYLOAD_NAMES_MAX} names")
    return tuple(value)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise InvalidValue("must be text")
    return value
