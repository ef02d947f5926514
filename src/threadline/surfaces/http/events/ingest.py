"""The way in of events over HTTP: addresses of Segment and CloudEvents, then limits, rejected log and group commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.credentials import Credential, fresh_key
from threadline.engine.engine import Engine
from threadline.engine.recording.recorder import refuse_erased
from threadline.engine.recording.validation import Checked, ValidatedEvent
from threadline.kernel.errors import MalformedBody
from threadline.kernel.event import CLAIMED_HISTORY, GLOBAL_PRIVACY_CONTROL, Event, Receipt
from threadline.kernel.ids import short_hash
from threadline.kernel.rejected import RejectedEntry
from threadline.kernel.tracing import CURRENT
from threadline.surfaces.http.answers.in_flight import read_body, without_mark
from threadline.surfaces.http.answers.metrics import Metrics
from threadline.surfaces.http.answers.problem import UnsupportedFormat
from threadline.surfaces.http.answers.routing import PREFLIGHT, Route
from threadline.surfaces.http.callers.access import Access, client_host, secrets_of
from threadline.surfaces.http.events.rate import Buckets, RateLimits, admitted, merged
from threadline.surfaces.http.events.writer import Writer
from threadline.surfaces.rejections import entry_of
from threadline.wire import cloudevents, segment
from threadline.wire.cloudevents_event import is_json, person_kinds
from threadline.wire.rejection import Rejection, masked

REJECTED_STORED_MAX = 2_500
"""Rejections of one request that the rejected log keeps; one more entry says how many there were besides."""
REPEATS_AT_ONCE_MAX = 1_000
REPEATS_PER_SECOND = 0.1
"""Messages without a key, of one source, each of which has an entry of its own, though it may be the same text as one
before: so many at once, and then so many a second. Of what comes beyond that, the same text is one entry."""

DECODED_ASIDE_BYTES, LARGE_BYTES = 16 * 1_024, 128 * 1_024
DECODED_ASIDE_COMMAS, LARGE_COMMAS = 512, 4_096
"""A body with more is decoded beside the event loop, so that reads do not wait for it; a large one in a thread of its
own, so that others of a usual size do not wait for it either.

There is a comma between messages, and each that is none takes longer than its few bytes would tell.
"""
CHECKED_ASIDE_EVENTS, LARGE_EVENTS = 20, 250
"""More events than that of one request are validated likewise."""

T = TypeVar("T")


class RejectedMessage(msgspec.Struct, rename="camel"):
    """Why one message of a request was not recorded."""

    index: int
    """Its place in the request, from 0."""
    message_id: str
    code: str
    message: str


class Outcome(msgspec.Struct):
    """The outcome of the messages of a request, answered after the commit: what was accepted is durable."""

    success: bool = True
    accepted: int = 0
    duplicates: int = 0
    """Messages that were recorded before; nothing was done again."""
    conflicts: int = 0
    """Messages whose key was used before with another payload: the first stands, both are kept."""
    rejected: list[RejectedMessage] = []


class Ingest:
    """Takes decoded messages to the log."""

    def __init__(
        self, engine: Engine, writer: Writer, metrics: Metrics, limits: RateLimits, usual: Executor, large: Executor
    ) -> None:
        self.engine = engine
        self.writer = writer
        self.metrics = metrics
        self._limits = limits
        self._usual, self._large = usual, large
        self._repeats = Buckets(REPEATS_PER_SECOND, REPEATS_AT_ONCE_MAX)

    async def take(
        self,
        results: Sequence[Event | Rejection],
        credential: Credential,
        address: str,
        form: str,
        secrets: Sequence[str] = (),
    ) -> Outcome:
        """Record what became an event, keep the rest in the rejected log, and answer when both are durable.

        ``secrets`` came with the request, and are kept nowhere. Events of people over their limit are rejected. Raises
        `RateLimited` with nothing recorded, `Unavailable` when some of it may be: sending it all again is safe.
        """
        events: list[Event] = []
        rejections: list[Rejection] = []
        for result in results:
            if isinstance(result, Rejection):
                rejections.append(result)
            else:
                claimed = result.historical and credential.kind == "write_key"
                events.append(_claimed(result) if claimed else result)
        self.writer.refuse_excess(len(events))
        # Beside the commit of others, and much of it beside the event loop as well.
        if len(events) > CHECKED_ASIDE_EVENTS:
            work = partial(self.engine.recorder.check, self.engine.recorder.readers.between(events))
            checked = await self._aside(work, large=len(events) > LARGE_EVENTS)
        else:
            checked = self.engine.recorder.check(events)
        charge = await self._limits.charge(checked, credential, address, rejected=len(rejections))
        try:
            if rejections:
                entries = self._entries(rejections, credential, form, secrets)
                await self.writer.reject(entries)
            receipts = await self._record(admitted(checked, charge.refused))
            refuse_erased(receipts)
        except Exception:
            charge.settle(None)
            raise
        charge.settle(receipts)
        outcome = _outcome(results, merged(receipts, charge.refused))
        self.metrics.count_events(
            credential.workspace,
            credential.name,
            accepted=outcome.accepted,
            duplicates=outcome.duplicates,
            conflicts=outcome.conflicts,
            rejected=len(outcome.rejected),
        )
        return outcome

    async def _record(self, checked: Sequence[Checked]) -> list[Receipt]:
        """The receipts of these events; their traces are linked with the request that brought them."""
        tracing = self.engine.recorder.tracing
        if tracing is None:
            return await self.writer.record(checked)
        ids = [event.id for event in checked if isinstance(event, ValidatedEvent)]
        tracing.came_with(ids, CURRENT.get())
        try:
            return await self.writer.record(checked)
        finally:
            tracing.forget(ids)

    async def decode(self, body: bytes, work: Callable[..., T]) -> T:
        """What ``work`` makes of a body; beside the event loop unless the body is short. There it gets a ``pause``: a
        read must not wait for a whole body, which may take the interpreter for a tenth of a second."""
        commas = body.count(b",")
        if len(body) <= DECODED_ASIDE_BYTES and commas <= DECODED_ASIDE_COMMAS:
            return work()
        giving_way = partial(work, pause=self.engine.recorder.readers.give)
        return await self._aside(giving_way, large=len(body) > LARGE_BYTES or commas > LARGE_COMMAS)

    async def _aside(self, work: Callable[[], T], *, large: bool) -> T:
        threads = self._large if large else self._usual
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def refuse_body(
        self, body: bytes, credential: Credential, address: str, error: MalformedBody, secrets: Sequence[str]
    ) -> None:
        """Keep a body in which no message could be made out: it can never be recorded, but it can be looked at.

        Raises `RateLimited` with nothing kept.
        """
        await self._limits.charge((), credential, address, rejected=1)
        rejection = Rejection(index=0, key="", code=error.code, message=str(error), raw=masked(body))
        entries = self._entries([rejection], credential, "text", secrets)
        await self.writer.reject(entries)
        self.metrics.events.add((credential.workspace, credential.name, "rejected"))

    def _entries(
        self,
        rejections: Sequence[Rejection],
        credential: Credential,
        form: str,
        secrets: Sequence[str],
    ) -> list[RejectedEntry]:
        now = self.engine.clock()
        entries = [
            self._entry(rejection, credential, form, now, secrets) for rejection in rejections[:REJECTED_STORED_MAX]
        ]
        if len(rejections) > REJECTED_STORED_MAX:
            message = f"{len(rejections) - REJECTED_STORED_MAX} more messages of the same request were rejected"
            last = msgspec.structs.replace(rejections[REJECTED_STORED_MAX], message=message)
            entries.append(self._entry(last, credential, form, now, secrets))
        return entries

    def _entry(
        self, rejection: Rejection, credential: Credential, form: str, now: int, secrets: Sequence[str]
    ) -> RejectedEntry:
        id = self._id(rejection, credential)
        return entry_of(
            rejection,
            id,
            workspace=credential.workspace,
            source=credential.name,
            form=form,
            received_at=now,
            secrets=secrets,
        )

    def _id(self, rejection: Rejection, credential: Credential) -> str:
        """The entry's id: by its key a message is known again; without one it is another each time it comes."""
        source = f"{credential.workspace}/{credential.name}"
        if not rejection.key and not self._repeats.wait(source):
            self._repeats.charge(source, 1)
            return fresh_key()
        kind = rejection.envelope.kind if rejection.envelope else ""
        text = rejection.raw.decode("utf-8", "backslashreplace")
        return short_hash(credential.workspace, credential.name, rejection.code, rejection.key, kind, text)


def _claimed(event: Event) -> Event:
    """The same, with the mark of an event that says of itself that it is history."""
    return msgspec.structs.replace(event, marks=(*event.marks, CLAIMED_HISTORY))


def _outcome(results: Sequence[Event | Rejection], receipts: Sequence[Receipt]) -> Outcome:
    outcome = Outcome()
    given = iter(receipts)
    for index, result in enumerate(results):
        if type(result) is Rejection:
            outcome.rejected.append(RejectedMessage(index, result.key, result.code, result.message))
            continue
        receipt = next(given)
        if receipt.status == "accepted":
            outcome.accepted += 1
        elif receipt.status == "duplicate":
            outcome.duplicates += 1
        elif receipt.status == "conflict":
            outcome.conflicts += 1
        else:
            assert type(result) is Event
            outcome.rejected.append(RejectedMessage(index, result.key, receipt.code, receipt.message))
    return outcome


# --- Segment's HTTP Tracking API -------------------------------------------------------------------

SEGMENT_LETTERS = {"identify": "i", "track": "t", "page": "p", "screen": "s", "group": "g", "alias": "a"}
"""Browser clients send to one letter."""
SEGMENT_BATCHES = ("/v1/batch", "/v1/import", "/v1/b", "/b", "/beacon/v1/batch", "/api/public/apps/batch")
"""The last one is Dittofeed's."""


def segment_paths(kind: str) -> tuple[str, ...]:
    """Where clients send one message of a kind: Segment's own paths, and those of Jitsu."""
    letter = SEGMENT_LETTERS[kind]
    return f"/v1/{kind}", f"/v1/{letter}", f"/{letter}", f"/api/s/{kind}", f"/api/s/s2s/{kind}"


class Segment:
    """The calls of the API, for every client of Segment and of those who took over its messages, as it is."""

    def __init__(self, ingest: Ingest, access: Access) -> None:
        self._ingest = ingest
        self._access = access

    def routes(self) -> Iterator[Route]:
        """Every path that a client of this API may use."""
        for kind in SEGMENT_LETTERS:
            for path in segment_paths(kind):
                yield Route("POST", path, partial(self.call, kind), open_to_browsers=True)
        for path in SEGMENT_BATCHES:
            yield Route("POST", path, partial(self.call, None), open_to_browsers=True)

    async def call(self, kind: str | None, request: Request, names: Mapping[str, str]) -> Response:
        """Answer one request: 200 when all that can be recorded is durable, with an outcome for each message."""
        secrets, address = secrets_of(request), client_host(request)
        credential = await self._access.sender(secrets)
        body = without_mark(await read_body(request, known=credential is not None))
        if credential is None:
            # Before the messages are read: whoever has no key must not be worth more work than that.
            key = await self._ingest.decode(body, lambda pause=None: segment.write_key(body))
            credential = await self._access.sender_in_body(key)
            if credential is None:
                raise await self._access.no_sender(secrets)
            secrets = (*secrets, key)
        work = partial(
            segment.decode,
            body,
            kind=kind,
            source=credential.name,
            workspace=credential.workspace,
            received_at=self._ingest.engine.clock(),
            fresh_key=fresh_key,
            marks=(GLOBAL_PRIVACY_CONTROL,) if request.headers.get("sec-gpc") == "1" else (),
        )
        try:
            decoded = await self._ingest.decode(body, work)
        except MalformedBody as error:
            await self._ingest.refuse_body(body, credential, address, error, secrets)
            raise
        secrets = (*secrets, decoded.write_key)
        outcome = await self._ingest.take(decoded.results, credential, address, "segment", secrets)
        return Response(msgspec.json.encode(outcome), media_type="application/json")


# --- CloudEvents -----------------------------------------------------------------------------------

CLOUDEVENTS_PATH = "/v1/cloudevents"


class CloudEvents:
    """The address for CloudEvents in their three modes, with the handshake by which a sender asks for permission.

    The credential is in the headers, or in the query as ``access_token``."""

    def __init__(self, ingest: Ingest, access: Access) -> None:
        self._ingest = ingest
        self._access = access
        self._kinds = person_kinds(ingest.engine.catalogue.rules.kinds)

    def routes(self) -> Iterator[Route]:
        """Delivery and its handshake."""
        yield Route("POST", CLOUDEVENTS_PATH, self.deliver, open_to_browsers=True)
        yield Route("OPTIONS", CLOUDEVENTS_PATH, self.permit, open_to_browsers=True)

    async def deliver(self, request: Request, names: Mapping[str, str]) -> Response:
        """Answer one delivery: 200 when all that can be recorded is durable, with an outcome for each event."""
        secrets = secrets_of(request)
        credential = await self._access.sender(secrets)
        if credential is None:
            raise await self._access.no_sender(secrets)
        address = client_host(request)
        content_type = request.headers.get("content-type", "").strip()
        structured = cloudevents.is_structured(content_type)
        if structured and not cloudevents.is_readable(content_type):
            # The HTTP binding, 3.2.
            raise UnsupportedFormat(
                f"{content_type[:100]} is a format that is not read here", hint="send application/cloudevents+json"
            )
        body = await read_body(request, known=True)
        if structured or is_json(content_type):
            body = without_mark(body)
        work = partial(
            cloudevents.decode,
            body,
            request.headers,
            source=credential.name,
            workspace=credential.workspace,
            received_at=self._ingest.engine.clock(),
            kinds=self._kinds,
        )
        try:
            decoded = await self._ingest.decode(body, work)
        except MalformedBody as error:
            await self._ingest.refuse_body(body, credential, address, error, secrets)
            raise
        outcome = await self._ingest.take(decoded.results, credential, address, "cloudevents", secrets)
        return Response(msgspec.json.encode(outcome), media_type="application/json")

    async def permit(self, request: Request, names: Mapping[str, str]) -> Response:
        """Let any sender deliver at any rate: what it may record is for its credential to say (webhooks, section 4)."""
        headers = {"allow": "OPTIONS, POST", **PREFLIGHT}
        if "webhook-request-origin" in request.headers:
            headers["webhook-allowed-origin"] = "*"
            headers["webhook-allowed-rate"] = "*"
        return Response(status_code=200, headers=headers)
