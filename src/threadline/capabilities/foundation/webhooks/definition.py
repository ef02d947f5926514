"""Where webhooks go: destinations, read from the section ``destinations``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions.declaring import (
    LINES,
    NAME_FORM,
    Form,
    Given,
    Named,
    Problems,
    by_name,
    described,
    duration,
    listed,
    struct,
    text,
)
from threadline.capabilities.foundation.webhooks.filling import Kind, payload_of, problems_of
from threadline.capabilities.foundation.webhooks.login import SECRET_FORM, Login, secret_in
from threadline.capabilities.foundation.webhooks.success import PATH_FORM, Success
from threadline.kernel.limits import (
    DESTINATION_PAYLOAD_NAMES_MAX,
    DESTINATION_SECRETS_MAX,
    DESTINATIONS_MAX,
    WEBHOOK_HEADER_LENGTH_MAX,
    WEBHOOK_HEADERS_MAX,
    WEBHOOK_RESULTS_MAX,
    WEBHOOK_TEMPLATE_LENGTH_MAX,
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
WITHOUT_BODY = ("GET", "DELETE")
JSON = "application/json"
_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"
_OURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "te",
        "traceparent",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    }
)
"""Headers that a call has anyway, or that would change where its body ends."""
_VARIABLE = re.compile(r"\{[{%#]")
_HEADER_NAME = text("the name of a header", _TOKEN)
_TEMPLATE = text(most=WEBHOOK_HEADER_LENGTH_MAX)
_QUERY_NAME = text("the name of a parameter", r"[A-Za-z0-9_.\[\]-]{1,100}")
_SECRETS = listed(SECRET_FORM, 1, DESTINATION_SECRETS_MAX, "a list such as [env:CRM_SECRET]: secrets stay out of files")


def _seconds(most: int) -> Form[float]:
    return duration(1, most, "5s").then(lambda size: size / SECOND, lambda size: format_duration(int(size * SECOND)))


class Destination(
    msgspec.Struct, frozen=True, kw_only=True, rename={"timeout_seconds": "timeout", "give_up_seconds": "give_up_after"}
):
    """Where webhooks go."""

    name: Given
    url: Annotated[
        str,
        Meta(
            max_length=WEBHOOK_URL_LENGTH_MAX,
            examples=["https://crm.example.com/hooks"],
            description="The address. Path and query may have variables such as {{ payload.order }}, the host may not. "
            "`env:NAME` takes it from an environment variable, where the address itself is a secret",
        ),
    ]
    secrets: Annotated[
        tuple[str, ...],
        _SECRETS,
        Meta(description="Environment variables, the newest secret first; each signs, so that a receiver can change."),
    ] = ()
    timeout_seconds: Annotated[float, _seconds(TIMEOUT_MAX)] = TIMEOUT / SECOND
    give_up_seconds: Annotated[float, _seconds(GIVE_UP_MAX)] = GIVE_UP / SECOND
    at_once: Annotated[int, Meta(ge=1, le=WEBHOOKS_AT_ONCE_MAX)] = AT_ONCE
    method: Annotated[Literal["POST", "PUT", "PATCH", "GET", "DELETE"], Meta(description="How it is called.")] = "POST"
    query: Annotated[
        dict[str, str],
        by_name(_TEMPLATE, _QUERY_NAME, most=WEBHOOK_HEADERS_MAX),
        Meta(description="Parameters that are added to the address: a template each, or a secret as env:NAME."),
    ] = msgspec.field(default_factory=dict)
    headers: Annotated[
        dict[str, str],
        by_name(_TEMPLATE, _HEADER_NAME, most=WEBHOOK_HEADERS_MAX),
        Meta(description="Headers: a template each, such as {{ id }}, or a secret as env:NAME."),
    ] = msgspec.field(default_factory=dict)
    body: Annotated[
        str | None,
        described(text(most=WEBHOOK_TEMPLATE_LENGTH_MAX), **{LINES: True}),
        Meta(description="A template of the body; JSON where `headers` name no other Content-Type."),
    ] = None
    login: Annotated[Login | None, Meta(description="How calls are authorised.")] = None
    success: Annotated[Success | None, Meta(description="Which answers are a success; else every status 2xx.")] = None
    result: Annotated[
        dict[str, str],
        by_name(PATH_FORM, NAME_FORM, most=WEBHOOK_RESULTS_MAX),
        Meta(description="What of the JSON of a successful answer the outcome has: a name, and the path to it."),
    ] = msgspec.field(default_factory=dict)
    payload: Annotated[
        tuple[str, ...] | None,
        listed(text(least=0), 0, DESTINATION_PAYLOAD_NAMES_MAX),
        Meta(description="The members of a payload that may go there; all where it is absent."),
    ] = None
    description: str = ""
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """What is wrong with the address, and with each template, by its line."""
        yield from self._address_problems()
        if self.body is not None and self.method in WITHOUT_BODY:
            yield "body", f"a {self.method} has no `body`; take another `method`, or put what is in it into `query`"
        if self.secrets and self.method in WITHOUT_BODY:
            yield "secrets", f"`secrets` sign a body, and a {self.method} has none; use `login`"
        yield from self._header_problems()
        for at, template, kind in self._templates:
            for line, problem in problems_of(template, kind, self.payload):
                where = f" of `{at[0]}`" if len(at) == 1 else f" of `{at[0]}` {at[1]!r}"
                yield at, f"line {line}{where}: {problem}"

    @property
    def _templates(self) -> Iterator[tuple[tuple[str, ...], str, Kind]]:
        """(place, template, what it is) of each part of the request."""
        yield ("url",), self.url, "address"
        for name, value in self.query.items():
            yield ("query", name), value, "text"
        for name, value in self.headers.items():
            yield ("headers", name), value, "header"
        if self.body is not None:
            yield ("body",), self.body, self.kind

    @property
    def read_of_payload(self) -> set[str]:
        """The members of a payload that its templates take."""
        return {name for _, template, _ in self._templates for name in payload_of(template)}

    def _address_problems(self) -> Problems:
        fixed = _VARIABLE.split(self.url, maxsplit=1)[0]
        if secret_in(self.url):
            return
        if not _is_url(fixed):
            yield "url", "`url` must be an address that begins with https://, such as https://crm.example.com/hooks"
        elif "@" in urlsplit(fixed).netloc:
            yield "url", "`url` contains a password; remove it, and sign with `secrets` instead"
        elif fixed != self.url and not re.match(r"https?://[^/?#]+[/?]", fixed, re.IGNORECASE):
            yield (
                "url",
                "`url` may have variables in path and query only: whoever sends events would choose the host",
            )

    def _header_problems(self) -> Problems:
        seen = dict[str, str]()
        for name in self.headers:
            lower = name.lower()
            if lower in seen:
                yield ("headers", name), f"`headers`: {seen[lower]!r} and {name!r} are the same; keep one"
            elif lower in _OURS:
                yield ("headers", name), f"`headers`: {name!r} is set by Threadline itself; remove it"
            elif self.login is not None and lower == self.login.header.lower():
                yield ("headers", name), f"`headers`: {name!r} is what `login` sets; keep one"
            seen[lower] = name

    @property
    def kind(self) -> Kind:
        """What its body is, by its content type."""
        content = self.content_type.partition(";")[0].strip().lower()
        if content == JSON or content.endswith("+json"):
            return "json"
        if content == "application/x-www-form-urlencoded":
            return "form"
        return "xml" if content.endswith(("/xml", "+xml", "/html")) else "text"

    @property
    def content_type(self) -> str:
        """The content type of its body."""
        return next((value for name, value in self.headers.items() if name.lower() == "content-type"), JSON)

    @property
    def is_written(self) -> bool:
        """Whether templates make its request."""
        return self.body is not None or bool(self.query or self.headers) or _VARIABLE.search(self.url) is not None

    @property
    def has_body(self) -> bool:
        """Whether a call brings a body: its own, or else the standard one."""
        return self.method not in WITHOUT_BODY

    @property
    def secret_names(self) -> Iterator[str]:
        """The environment variables that a call needs."""
        yield from self.secrets
        for value in (self.url, *self.query.values(), *self.headers.values()):
            if name := secret_in(value):
                yield name
        if self.login is not None:
            yield from self.login.secret_names

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
