"""One call over HTTP: its request, whether and when it is sent again, and what the response says."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from threadline.capabilities.foundation.events.operations.record import RecordResult
from threadline.kernel import errors
from threadline.kernel.errors import InvalidValue, ThreadlineError, Unavailable
from threadline.kernel.limits import BATCH_EVENTS_MAX
from threadline.kernel.time import format_time
from threadline.surfaces.python.call import Answer, Call
from threadline.surfaces.python.messages import instant_of

RECORD: Call[RecordResult] = Call("record", "POST", "/v1/events", RecordResult)
PAUSE_SECONDS = 0.2
"""The longest pause before the second attempt; it doubles with each further one."""
PAUSE_SECONDS_MAX = 20.0
_AGAIN = frozenset({429, 503})


class Request(NamedTuple):
    """What is sent."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]
    body: bytes | None


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(NamedTuple):
    """No response came."""

    reason: str
    sent: bool
    """Whether the request may have reached the server."""


def request_of(call: Call[Answer], values: Mapping[str, Any]) -> Request:
    """The request of a call."""
    given = call.given(values)
    path = call.path
    for name in [name for name in given if f"{{{name}}}" in path]:
        path = path.replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
    if call.method == "POST":
        headers = {"content-type": "application/json", "idempotency-key": secrets.token_hex(16)}
        return Request(call.method, path, headers, msgspec.json.encode(given))
    query = urlencode([(name, text) for name, value in given.items() for text in _texts(value)])
    return Request(call.method, f"{path}?{query}" if query else path, {}, None)


def answer_of(call: Call[Answer], response: Response) -> Answer:
    """What a response answers. Raises the error that it tells."""
    if response.status >= 300:
        raise error_of(response)
    try:
        body: Any = response.body
        answer: Answer = body if call.answer is bytes else msgspec.json.decode(body, type=call.answer)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"{call.name}: the answer is not one of Threadline: {error}") from None
    return answer


def error_of(response: Response) -> ThreadlineError:
    """The error that a response tells, of the class that raises it in the server."""
    try:
        problem = msgspec.json.decode(response.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem = {"detail": f"status {response.status} without a problem document: is this a Threadline server?"}
    code = str(problem.get("code", ""))
    known = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ThreadlineError)]
    chosen = next((kind for kind in known if kind.code == code and kind is not errors.EventRejected), None)
    chosen = chosen or next((kind for kind in known if kind.status == response.status), ThreadlineError)
    error = chosen(str(problem.get("detail", "")), hint=problem.get("hint") or None)
    error.code, error.status = code or chosen.code, response.status
    return error


def pause(call: Call[Answer], attempt: int, attempts: int, outcome: Response | Lost) -> float | None:
    """The seconds to wait before a call is sent again after so many attempts; None: it is not."""
    if attempt >= attempts:
        return None
    # The longest pause is drawn from, so that clients that failed together do not come back together.
    longest = min(PAUSE_SECONDS * 2 ** (attempt - 1), PAUSE_SECONDS_MAX)
    if isinstance(outcome, Lost):
        return random.uniform(0, longest) if call.repeatable or not outcome.sent else None
    if outcome.status not in _AGAIN:
        return None
    return _seconds(outcome.headers.get("retry-after", "")) + random.uniform(0, longest)


def lost(url: str, outcome: Lost) -> Unavailable:
    """The error for a response that never came."""
    hint = "" if outcome.sent else "`threadline serve` starts a server; THREADLINE_URL or --url names another one."
    return Unavailable(f"{url} does not answer: {outcome.reason}", hint=hint)


def batches(events: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The parameters of as many requests as it takes. An event without a key gets one, so that it can be sent again."""
    if isinstance(events, Mapping | str | bytes):
        raise InvalidValue("events: expected a list of events; put a single one in a list")
    written = [_event(event, f"events[{index}]") for index, event in enumerate(events)]
    for first in range(0, len(written), BATCH_EVENTS_MAX):
        yield {"events": written[first : first + BATCH_EVENTS_MAX]}


def _event(event: Mapping[str, Any], label: str) -> dict[str, Any]:
    if not isinstance(event, Mapping):
        raise InvalidValue(f"{label}: expected a mapping, got `{type(event).__name__}`")
    fields = {"key": secrets.token_hex(16), **{name: value for name, value in event.items() if value is not None}}
    if isinstance(fields.get("occurred_at"), datetime | int):
        fields["occurred_at"] = format_time(instant_of(fields["occurred_at"]))
    return fields


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value if isinstance(value, str) else msgspec.json.encode(value).decode()]


def _seconds(text: str) -> float:
    return min(float(text), PAUSE_SECONDS_MAX) if text.isascii() and text.isdigit() else 0.0
