"""Where webhooks go: destinations, read from the section ``destinations``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    Form,
    Given,
    Named,
    Problems,
    duration,
    listed,
    struct,
    text,
)
from threadline.kernel.limits import (
    DESTINATION_PAYLOAD_NAMES_MAX,
    DESTINATION_SECRETS_MAX,
    DESTINATIONS_MAX,
    WEBHOOK_URL_LENGTH_MAX,
    WEBHOOKS_AT_ONCE_MAX,
)
from threadline.kernel.names import NameKind
from threadline.kernel.sender import DESTINATION_FAILURES_MAX, Queue
from threadline.kernel.time import DAY, SECOND, format_duration

KIND = "webhook"
TIMEOUT_MAX = 10 * SECOND
"""A dispatcher's lease has at least 15 seconds left when it sends: within these an answer counts."""
TIMEOUT = 5 * SECOND
GIVE_UP = 3 * DAY
GIVE_UP_MAX = 30 * DAY
AT_ONCE = 4

URL_QUEUES = 4
"""Queues shared by calls of addresses that rules name themselves."""
_WANTED = "an environment variable such as env:CRM_SECRET: secrets stay out of files"
_SECRET = text(_WANTED, "env:[A-Za-z_][A-Za-z0-9_]*").then(lambda secret: secret.removeprefix("env:"))
_SECRETS = listed(_SECRET, 1, DESTINATION_SECRETS_MAX, "a list such as [env:CRM_SECRET]: secrets stay out of files")


def _seconds(most: int) -> Form[float]:
    return duration(1, most, "5s").then(lambda size: size / SECOND, lambda size: format_duration(int(size * SECOND)))


class Destination(
    msgspec.Struct, frozen=True, kw_only=True, rename={"timeout_seconds": "timeout", "give_up_seconds": "give_up_after"}
):
    """Where webhooks go."""

    name: Given
    url: Annotated[str, Meta(max_length=WEBHOOK_URL_LENGTH_MAX, examples=["https://crm.example.com/hooks"])]
    secrets: Annotated[
        tuple[str, ...],
        _SECRETS,
        Meta(description="Environment variables, the newest secret first; each signs, so that a receiver can change."),
    ] = ()
    timeout_seconds: Annotated[float, _seconds(TIMEOUT_MAX)] = TIMEOUT / SECOND
    give_up_seconds: Annotated[float, _seconds(GIVE_UP_MAX)] = GIVE_UP / SECOND
    at_once: Annotated[int, Meta(ge=1, le=WEBHOOKS_AT_ONCE_MAX)] = AT_ONCE
    payload: Annotated[
        tuple[str, ...] | None,
        listed(text(least=0), 0, DESTINATION_PAYLOAD_NAMES_MAX),
        Meta(description="The members of a payload that may go there; all where it is absent."),
    ] = None
    description: str = ""
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """What is wrong with the address."""
        if not _is_url(self.url):
            yield "url", "`url` must be an address that begins with https://, such as https://crm.example.com/hooks"
        elif "@" in urlsplit(self.url).netloc:
            yield "url", "`url` contains a password; remove it, and sign with `secrets` instead"

    @property
    def queue(self) -> Queue:
        """Its queue."""
        return Queue(self.name, self.at_once, self.give_up_seconds, DESTINATION_FAILURES_MAX, self, KIND)


def url_queues() -> tuple[Queue, ...]:
    """The queues of calls to addresses that rules name themselves. Several hosts share one, so none of them rests: the
    sender leaves alone the hosts that fail."""
    return tuple(
        Queue(f"url.{number}", AT_ONCE, GIVE_UP / SECOND, title="addresses in rules") for number in range(URL_QUEUES)
    )


def queue_of(call: Mapping[str, Any]) -> str:
    """The queue of a call: its destination's, or that of its address."""
    if "destination" in call:
        return str(call["destination"])
    host = urlsplit(call["url"]).netloc if _is_url(call["url"]) else ""
    return f"url.{crc32(host.encode('utf-8', 'replace')) % URL_QUEUES}"


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


DESTINATIONS = Named(
    "destinations", "destination", struct(Destination), "Where webhooks go, by name.", "crm", most=DESTINATIONS_MAX
)
SECTION = DESTINATIONS.declared
DESTINATION = NameKind(DESTINATIONS.what, lambda definitions: definitions.names_in(DESTINATIONS.section))
"""Any is right where none is declared."""


def declare(definitions: Definitions) -> list[Queue]:
    """A queue for each destination, and those for addresses that rules name themselves."""
    destinations = DESTINATIONS.read(definitions).values
    return [*url_queues(), *(destination.queue for destination in destinations.values())]
