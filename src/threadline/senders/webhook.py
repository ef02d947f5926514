"""Calls webhooks: a signed POST as Standard Webhooks has it, and what the answer means."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidSetting, InvalidValue
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
from threadline.outgoing.allowed_addresses import Refused, read_networks
from threadline.outgoing.public_call import Answer, Failed, HttpCaller
from threadline.senders.hosts import Hosts
from threadline.settings import Settings

KIND = "webhook"
"""The kind of effects that it sends."""
TYPE = "rule_matched"
"""What the body says happened, unless the call names its own type."""
SECRET_PREFIX = "whsec_"
SECRET_BYTES = range(24, 65)
TIMEOUT_SECONDS = 5.0
RETRY_AFTER_MAX_SECONDS = 3_600.0
GONE = 410
_FAILING = frozenset({408, 425, 429})
_SHOWN_MAX = 200
_BODY_SHOWN_MAX = 8_000
SIGNATURE = "webhook-signature"
HIDDEN = "(hidden)"


COPY = Copy("mail and webhooks", why="other systems have them; `erasures.list` says who was erased")


class Target(NamedTuple):
    """Where a call goes, and how."""

    url: str
    secrets: tuple[bytes, ...] = ()
    timeout_seconds: float = TIMEOUT_SECONDS
    payload: tuple[str, ...] | None = None
    """The members of a payload that may go there; None: all."""


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
            body, withheld = written(effect.data, target.payload)
        except InvalidValue as error:
            return Outcome(type=EFFECT_PARKED, properties=details, parked=str(error))
        details |= {"withheld": withheld} if withheld else {}
        headers = self._headers(target, effect_id, body)
        began = time.perf_counter()
        try:
            answer = self._caller.post(target.url, headers, body, target.timeout_seconds)
        except Refused as error:
            parked = Outcome(type=EFFECT_PARKED, properties=details, parked=str(error))
            return replace(parked, exchange=_exchange(target, headers, body, began, problem=str(error)))
        except Failed as error:
            details["error"] = str(error)
            outcome = Outcome(type=EFFECT_RETRIED, properties=details, retry_after_seconds=0.0, destination="failing")
            return replace(outcome, exchange=_exchange(target, headers, body, began, problem=str(error)))
        outcome = self._outcome(answer, {**details, "status": answer.status}, named=named)
        return replace(outcome, exchange=_exchange(target, headers, body, began, answer))

    def _headers(self, target: Target, id: str, body: bytes) -> dict[str, str]:
        seconds = self._clock() // SECOND
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "threadline",
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
        }
        if (trace := CURRENT.get()) is not None:
            headers[TRACEPARENT] = str(trace)
        if target.secrets:
            headers[SIGNATURE] = signatures(target.secrets, id, seconds, body)
        return headers

    def _outcome(self, answer: Answer, details: dict[str, Any], *, named: bool) -> Outcome:
        if 200 <= answer.status < 300:
            return Outcome(type=EFFECT_DONE, properties=details)
        if answer.status == GONE:
            # An address in a rule shares its queue with others, which have nothing to do with it.
            return Outcome(
                type=EFFECT_PARKED,
                properties=details,
                parked="it answered 410, gone",
                destination="gone" if named else "healthy",
            )
        shown = answer.body[:_SHOWN_MAX].decode("utf-8", "replace")
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


def _exchange(
    target: Target,
    headers: Mapping[str, str],
    body: bytes,
    began: float,
    answer: Answer | None = None,
    *,
    problem: str = "",
) -> Exchange:
    """What operators see of a call. Its signature would let nobody forge another one, but it is nobody's business."""
    return Exchange(
        url=target.url.partition("?")[0],
        headers={name: HIDDEN if name == SIGNATURE else value for name, value in headers.items()},
        body=body[:_BODY_SHOWN_MAX].decode("utf-8", "replace"),
        milliseconds=round((time.perf_counter() - began) * 1_000),
        status=0 if answer is None else answer.status,
        answer="" if answer is None else answer.body.decode("utf-8", "replace"),
        problem=problem,
    )


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


def written(data: Mapping[str, Any], allowed: tuple[str, ...] | None) -> tuple[bytes, list[str]]:
    """The body as canonical JSON, and the names of what of the payload may not go there."""
    payload = data.get("payload")
    withheld: list[str] = []
    if allowed is not None and type(payload) is dict:
        withheld = sorted(payload.keys() - set(allowed))
        payload = {name: value for name, value in payload.items() if name in allowed}
    elif allowed is not None and payload is not None:
        payload, withheld = None, ["payload"]
    content = {name: data[name] for name in ("rule", "version", "journey", "run", "step") if name in data}
    if payload is not None:
        content["payload"] = payload
    return canonical_json({"type": data.get("type", TYPE), "timestamp": data.get("at"), "data": content}), withheld


class Destination(Protocol):
    """What is declared of a destination."""

    name: str
    url: str
    secrets: tuple[str, ...]
    timeout_seconds: float
    payload: tuple[str, ...] | None
    place: str


def _make(ports: SenderPorts[Settings]) -> WebhookSender:
    declared: list[Destination] = ports.destinations(KIND)
    settings = ports.settings
    return WebhookSender(
        {destination.name: _target(destination, ports) for destination in declared},
        tuple(read_secret(part, "webhook_secrets") for part in comma_separated(settings.webhook_secrets)),
        HttpCaller(read_networks(settings.webhook_private_addresses), plain=settings.webhook_http),
        ports.clock,
    )


def _target(declared: Destination, ports: SenderPorts[Settings]) -> Target:
    secrets = []
    for name in declared.secrets:
        if not (secret := ports.environment(name)):
            raise InvalidSetting(
                f"{declared.place}: destination {declared.name!r} signs with env:{name}, which is not set"
            )
        secrets.append(read_secret(secret, f"env:{name}"))
    return Target(declared.url, tuple(secrets), declared.timeout_seconds, declared.payload)


SENDER = SenderFactory(KIND, _make)
