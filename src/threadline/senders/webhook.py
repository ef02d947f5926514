"""Calls webhooks: a signed POST as Standard Webhooks has it, or what was written, and what the answer means."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from threadline.kernel.errors import InvalidSetting, InvalidValue
from threadline.kernel.limits import WEBHOOK_ANSWER_BYTES_MAX
from threadline.kernel.lists import comma_separated
from threadline.kernel.personal import Copy
from threadline.kernel.policy import Effect
from threadline.kernel.sender import (
    EFFECT_DONE,
    EFFECT_PARKED,
    EFFECT_RETRIED,
    Exchange,
    Outcome,
    SenderFactory,
    SenderPorts,
)
from threadline.kernel.time import SECOND, Clock, from_datetime
from threadline.kernel.tracing import CURRENT, TRACEPARENT
from threadline.kernel.webhook import HIDDEN, allowed_payload, standard_body, without_secrets
from threadline.outgoing.allowed_addresses import Refused, read_networks
from threadline.outgoing.public_call import ANSWER_BYTES_MAX, Answer, Failed, HttpCaller
from threadline.senders.hosts import Hosts
from threadline.senders.webhook_answers import Reading
from threadline.senders.webhook_login import Authorised, Login, NoToken, authorised
from threadline.settings import Settings

KIND = "webhook"
"""The kind of effects that it sends."""
REQUEST = "request"
"""The member of an effect's data that has the request which its preparation has filled in."""
ENVIRONMENT = "env:"
UNAUTHORIZED = 401
SECRET_PART_MIN = 8
"""Characters of a part of a secret address that is hidden where it stands alone."""
SECRET_PREFIX = "whsec_"
SECRET_BYTES = range(24, 65)
TIMEOUT_SECONDS = 5.0
RETRY_AFTER_MAX_SECONDS = 3_600.0
GONE = 410
_FAILING = frozenset({408, 425, 429})
_SHOWN_MAX = 200
_BODY_SHOWN_MAX = 8_000
SIGNATURE = "webhook-signature"


COPY = Copy("mail and webhooks", why="other systems have them; `erasures.list` says who was erased")


class Target(NamedTuple):
    """Where a call goes, and how."""

    url: str
    secrets: tuple[bytes, ...] = ()
    timeout_seconds: float = TIMEOUT_SECONDS
    payload: tuple[str, ...] | None = None
    """The members of a payload that may go there; None: all."""
    method: str = "POST"
    has_body: bool = True
    is_written: bool = False
    """Whether a preparation has filled in the request."""
    secret_url: str = ""
    """The address, where an environment variable has it."""
    query: Mapping[str, str] = {}
    """Parameters that are secrets, with their values."""
    headers: Mapping[str, str] = {}
    """Headers that are secrets, with their values."""
    login: Authorised | None = None
    reading: Reading = Reading()

    @property
    def hidden(self) -> tuple[str, ...]:
        """What nobody may see in an address, a body or an answer, also where it is encoded."""
        plain = (self.secret_url, *self.query.values(), *self.headers.values())
        encoded = (quote(value, safe="") for value in self.query.values())
        return (*plain, *_after_host(self.secret_url), *encoded, *(self.login.secrets if self.login else ()))


class Request(NamedTuple):
    """A call, ready to be made."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def _after_host(url: str) -> tuple[str, ...]:
    """What of a secret address an error message or an answer might repeat alone."""
    parts = urlsplit(url)
    return tuple(part for part in (parts.path.strip("/"), parts.query) if len(part) >= SECRET_PART_MIN)


def read_secret(text: str, where: str) -> bytes:
    """The bytes of ``whsec_…``. Raises `InvalidSetting`, which does not repeat what was read."""
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(SECRET_PREFIX) or len(secret) not in SECRET_BYTES:
        raise InvalidSetting(f"{where}: a secret is {SECRET_PREFIX} and 24 to 64 bytes in base64")
    return secret


def signatures(secrets: Sequence[bytes], id: str, seconds: int, body: bytes) -> str:
    """The header ``webhook-signature``: one signature for each secret, so that a receiver can change over."""
    signed = f"{id}.{seconds}.".encode() + body
    made = (hmac.new(secret, signed, hashlib.sha256).digest() for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in made)


class WebhookSender:
    """Sends effects of the kind ``webhook``; their data name a ``destination`` or a ``url``. Thread-safe."""

    kind = KIND

    def __init__(
        self, targets: Mapping[str, Target], secrets: tuple[bytes, ...], caller: HttpCaller, clock: Clock
    ) -> None:
        self._targets = targets
        self._secrets = secrets
        """They sign calls of addresses that rules name themselves."""
        self._caller = caller
        self._clock = clock
        self._hosts = Hosts(clock)

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """See `Sender`. The body is the same for every attempt, byte for byte; only time and signature are new."""
        name = effect.data.get("destination")
        target = self._targets.get(name) if name is not None else Target(str(effect.data.get("url")), self._secrets)
        details = {"host": _host(str(effect.data.get("url")))} if name is None else {"destination": name}
        if target is None:
            return Outcome(type=EFFECT_PARKED, properties=details, parked=f"no destination {name!r} is declared")
        if name is not None:
            return self._called(target, effect, effect_id, details, named=True)
        host = _host_and_port(target.url)
        if wait := self._hosts.wait(host):
            details["error"] = "its host fails, and is left alone for a while"
            return Outcome(type=EFFECT_RETRIED, properties=details, retry_after_seconds=wait)
        outcome = self._called(target, effect, effect_id, details, named=False)
        self._hosts.heard(host, failing=outcome.destination == "failing")
        return outcome

    def _called(
        self, target: Target, effect: Effect, effect_id: str, details: dict[str, Any], *, named: bool
    ) -> Outcome:
        try:
            request, withheld = _request(target, effect.data)
        except InvalidValue as error:
            return Outcome(type=EFFECT_PARKED, properties=details, parked=str(error))
        details |= {"withheld": withheld} if withheld else {}
        began = time.perf_counter()
        call = _Call(self._caller, target, request._replace(headers=self._headers(target, effect_id, request)))
        try:
            answer = call.answer(refetch=True)
        except Refused as error:
            why = call.masked(str(error))
            parked = Outcome(type=EFFECT_PARKED, properties=details, parked=why)
            return replace(parked, exchange=call.exchange(began, problem=why))
        except (Failed, NoToken) as error:
            details["error"] = call.masked(str(error))
            outcome = Outcome(type=EFFECT_RETRIED, properties=details, retry_after_seconds=0.0, destination="failing")
            return replace(outcome, exchange=call.exchange(began, problem=details["error"]))
        outcome = self._outcome(call, answer, {**details, "status": answer.status}, named=named)
        is_done = outcome.type == EFFECT_DONE
        return replace(outcome, exchange=call.exchange(began, answer, is_done=is_done))

    def _headers(self, target: Target, id: str, request: Request) -> dict[str, str]:
        seconds = self._clock() // SECOND
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "threadline",
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
        }
        if not target.has_body:
            del headers["Content-Type"]
        written = {name.lower() for name in request.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in written} | {**request.headers}
        if (trace := CURRENT.get()) is not None:
            headers[TRACEPARENT] = str(trace)
        if target.secrets:
            headers[SIGNATURE] = signatures(target.secrets, id, seconds, request.body)
        return headers

    def _outcome(self, call: _Call, answer: Answer, details: dict[str, Any], *, named: bool) -> Outcome:
        reading = call.target.reading
        if reading.is_success(answer.status, answer.body):
            taken = call.masked_value(reading.taken(answer.body))
            return Outcome(type=EFFECT_DONE, properties={**details, **taken})
        if answer.status == GONE:
            # An address in a rule shares its queue with others, which have nothing to do with it.
            return Outcome(
                type=EFFECT_PARKED,
                properties=details,
                parked="it answered 410, gone",
                destination="gone" if named else "healthy",
            )
        shown = call.masked(answer.body[:ANSWER_BYTES_MAX].decode("utf-8", "replace"))[:_SHOWN_MAX]
        failing = answer.status >= 500 or answer.status in _FAILING
        return Outcome(
            type=EFFECT_RETRIED,
            properties={**details, "answer": shown} if shown else details,
            retry_after_seconds=self._asked_to_wait(answer.retry_after),
            destination="failing" if failing else "healthy",
        )

    def _asked_to_wait(self, text: str) -> float:
        """The seconds of ``Retry-After``, within a bound; 0 for none."""
        try:
            wait = float(text) if text.isdecimal() else _until(text, self._clock())
        except (ValueError, TypeError, OverflowError, InvalidValue):
            return 0.0
        return min(max(wait, 0.0), RETRY_AFTER_MAX_SECONDS)


def _until(text: str, now: int) -> float:
    return (from_datetime(parsedate_to_datetime(text)) - now) / SECOND


class _Call:
    """One attempt at a call."""

    def __init__(self, caller: HttpCaller, target: Target, request: Request) -> None:
        self.target = target
        self._caller = caller
        self._request = request
        self._deadline = time.monotonic() + target.timeout_seconds
        self._secrets = target.hidden

    def answer(self, *, refetch: bool) -> Answer:
        """The answer; a token that it refuses is fetched anew, once. Raises `Refused`, `Failed` and `NoToken`."""
        target, request = self.target, self._request
        url, headers, login = request.url, {**request.headers, **target.headers}, target.login
        for name, value in target.query.items():
            url += f"{'&' if '?' in url else '?'}{quote(name, safe='')}={quote(value, safe='')}"
        if login is not None:
            headers[login.header] = login.value(request.body, self._left())
            self._secrets = target.hidden
        bytes_max = WEBHOOK_ANSWER_BYTES_MAX if target.reading.wants_body else 0
        answer = self._caller.request(target.method, url, headers, request.body, self._left(), bytes_max)
        if answer.status == UNAUTHORIZED and refetch and login is not None and login.tokens is not None:
            login.value(request.body, self._left(), refused=headers[login.header].removeprefix("Bearer "))
            before = self._secrets
            answer = self.answer(refetch=False)
            self._secrets = (*before, *self._secrets)
        return answer

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.001)

    def masked(self, text: str) -> str:
        """A text without the secrets of the call."""
        return without_secrets(text, self._secrets)

    def masked_value(self, value: Any) -> Any:
        """A value of JSON without the secrets of the call."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, dict):
            return {self.masked(name): self.masked_value(inner) for name, inner in value.items()}
        return [self.masked_value(inner) for inner in value] if isinstance(value, list) else value

    def exchange(
        self, began: float, answer: Answer | None = None, *, problem: str = "", is_done: bool = False
    ) -> Exchange:
        """What operators see of it. A signature would let nobody forge another one, but it is nobody's business."""
        target, headers = self.target, dict[str, str](self._request.headers)
        login = {target.login.header: HIDDEN} if target.login is not None else {}
        headers |= dict.fromkeys(target.headers, HIDDEN) | login
        headers |= {SIGNATURE: HIDDEN} if SIGNATURE in headers else {}
        shown = b"" if answer is None or is_done else answer.body[:ANSWER_BYTES_MAX]
        return Exchange(
            url=_shown_url(target, self._request),
            headers={name: self.masked(value) for name, value in headers.items()},
            body=self.masked(self._request.body[:_BODY_SHOWN_MAX].decode("utf-8", "replace")),
            milliseconds=round((time.perf_counter() - began) * 1_000),
            status=0 if answer is None else answer.status,
            answer=self.masked(shown.decode("utf-8", "replace")),
            problem=problem,
            method=target.method,
        )


def _shown_url(target: Target, request: Request) -> str:
    """The address without its query; of a secret one the host alone."""
    if not target.secret_url:
        return request.url.partition("?")[0]
    parts = urlsplit(target.secret_url)
    return f"{parts.scheme}://{parts.hostname}/{HIDDEN}"


def _request(target: Target, data: Mapping[str, Any]) -> tuple[Request, list[str]]:
    """The call, and the names of what of the payload may not go there. Raises `InvalidValue`."""
    made = data.get(REQUEST) if target.is_written else None
    if target.is_written and made is None:
        raise InvalidValue("its request was not filled in: the capability webhooks is off, or the process is older")
    url = target.secret_url or (target.url if made is None else made["url"])
    if target.secret_url and made is not None:
        url += made["url"].replace("?", "&", 1) if "?" in url else made["url"]  # its query
    headers = {} if made is None else made["headers"]
    if made is not None and made["body"] is not None:
        return Request(url, headers, made["body"].encode()), allowed_payload(data.get("payload"), target.payload)[1]
    body, withheld = standard_body(data, target.payload)
    return Request(url, headers, body if target.has_body else b""), withheld


def _host_and_port(url: str) -> str:
    """Host and port of an address: the key of its circuit breaker."""
    try:
        return urlsplit(url).netloc[:_SHOWN_MAX].lower()
    except ValueError:
        return ""


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "")[:_SHOWN_MAX]
    except ValueError:
        return ""


class Destination(Protocol):
    """What is declared of a destination."""

    name: str
    url: str
    secrets: tuple[str, ...]
    timeout_seconds: float
    payload: tuple[str, ...] | None
    place: str
    method: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    login: Login | None
    success: Success | None
    result: Mapping[str, str]

    @property
    def has_body(self) -> bool: ...  # noqa: D102
    @property
    def is_written(self) -> bool: ...  # noqa: D102
    @property
    def secret_names(self) -> Iterator[str]: ...  # noqa: D102


class Success(Protocol):
    """What is declared of answers."""

    statuses: tuple[tuple[int, int], ...]
    path: str
    value: Any


def _make(ports: SenderPorts[Settings]) -> WebhookSender:
    declared: list[Destination] = ports.destinations(KIND)
    settings = ports.settings
    caller = HttpCaller(read_networks(settings.webhook_private_addresses), plain=settings.webhook_http)
    return WebhookSender(
        {destination.name: _target(destination, ports, caller) for destination in declared},
        tuple(read_secret(part, "webhook_secrets") for part in comma_separated(settings.webhook_secrets)),
        caller,
        ports.clock,
    )


def _target(declared: Destination, ports: SenderPorts[Settings], caller: HttpCaller) -> Target:
    known = {name: _secret(declared, name, ports) for name in dict.fromkeys(declared.secret_names)}
    success, login = declared.success, declared.login
    reading = Reading(result=declared.result)
    if success is not None:
        reading = Reading(success.statuses, success.path, success.value, declared.result)
    return Target(
        declared.url,
        tuple(read_secret(known[name], f"env:{name}") for name in declared.secrets),
        declared.timeout_seconds,
        declared.payload,
        declared.method,
        declared.has_body,
        declared.is_written,
        known.get(declared.url.removeprefix(ENVIRONMENT), "") if declared.url.startswith(ENVIRONMENT) else "",
        _of_environment(declared.query, known),
        _of_environment(declared.headers, known),
        authorised(login, known, caller, ports.clock) if login is not None else None,
        reading,
    )


def _of_environment(values: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Those of the values that are secrets, with what they are."""
    named = {name: value.removeprefix(ENVIRONMENT) for name, value in values.items() if value.startswith(ENVIRONMENT)}
    return {name: known[variable] for name, variable in named.items()}


def _secret(declared: Destination, name: str, ports: SenderPorts[Settings]) -> str:
    if not (secret := ports.environment(name)):
        does = "signs with" if name in declared.secrets else "needs"
        raise InvalidSetting(f"{declared.place}: destination {declared.name!r} {does} env:{name}, which is not set")
    if not secret.isascii() or not secret.isprintable():
        raise InvalidSetting(
            f"{declared.place}: destination {declared.name!r}: env:{name} has characters that no header can have"
        )
    return secret


SENDER = SenderFactory(KIND, _make)
