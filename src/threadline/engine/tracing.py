"""OpenTelemetry: an event and all that follows from it are one trace, whichever process works on it and however late.

The id of the trace is the id of the event, so whoever has any consequence of it can go on with its trace, and nothing
about traces is stored. Spans are written when what they measure has ended. Without the setting `tracing` no engine has
a `Tracing`, and the only cost is a comparison with None for each call.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from threadline.engine.folding.packing import unpack_event
from threadline.engine.scheduled import due_of
from threadline.kernel.errors import InvalidSetting, ThreadlineError
from threadline.kernel.event import Event, Receipt
from threadline.kernel.extra import from_source
from threadline.kernel.ids import short_hash
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.sender import EFFECT_UNKNOWN, Outcome
from threadline.kernel.store import Store
from threadline.kernel.time import Clock
from threadline.kernel.tracing import CURRENT, TraceContext, read_traceparent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

CAUSES_MAX = 16
"""Causes that are followed back to the event that began a trace."""
ROOTS_REMEMBERED = 10_000

log = logging.getLogger("threadline.tracing")

Attributes = Mapping[str, str | int | bool]


class Reacted(NamedTuple):
    """A policy that has wished for something, or raised."""

    policy: str
    cause: str
    """The event that it has reacted to: the recorded one, or one that another policy has emitted because of it."""
    began: int
    ended: int
    wishes: int
    error: str = ""


class Arrival(NamedTuple):
    """A request that came in."""

    span: TraceContext
    """Of its handling."""
    caller: TraceContext | None
    at: int


class CallTrace:
    """What is measured while one call records events. Not thread-safe: a call is worked on by one thread."""

    __slots__ = ("clock", "commits", "committed", "reacted")

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.reacted: dict[str, list[Reacted]] = {}
        """By the id of the event that is recorded; of an attempt that had to be repeated, the last one's."""
        self.committed = (0, 0)
        """When the last commit began and ended, microseconds."""
        self.commits = 0

    def commit(self, began: int) -> None:
        """Note a commit that has ended now."""
        self.committed = (began, self.clock())
        self.commits += 1


class _Ids:
    """Gives the next span of this thread the ids that were chosen for it."""

    def __init__(self) -> None:
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        self._random = RandomIdGenerator()
        self._chosen = threading.local()

    def choose(self, trace: int, span: int) -> None:
        self._chosen.ids = (trace, span)

    def generate_trace_id(self) -> int:
        """See `IdGenerator`."""
        return getattr(self._chosen, "ids", (0, 0))[0] or self._random.generate_trace_id()

    def generate_span_id(self) -> int:
        """See `IdGenerator`; it is asked last."""
        span = getattr(self._chosen, "ids", (0, 0))[1] or self._random.generate_span_id()
        self._chosen.ids = (0, 0)
        return span

    def is_trace_id_random(self) -> bool:
        """Whether the ids of traces are evenly distributed, as samplers need it: those of events are hashes."""
        return True


class Tracing:
    """Writes spans. Thread-safe."""

    def __init__(self, store: Store, clock: Clock, provider: TracerProvider, ids: _Ids) -> None:
        self._store = store
        self._clock = clock
        self._provider = provider
        self._ids = ids
        self._tracer = provider.get_tracer("threadline")
        self._roots: dict[str, str] = {}
        self._came_with: dict[str, TraceContext] = {}

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    # --- requests ---------------------------------------------------------------------------

    def arrive(self, traceparent: str) -> Arrival:
        """A request that comes in now, in its caller's trace; a trace of its own where it names none."""
        caller = read_traceparent(traceparent)
        trace = caller.trace if caller else self._ids.generate_trace_id()
        sampled = caller.sampled if caller else self._samples(trace)
        return Arrival(TraceContext(trace, self._ids.generate_span_id(), sampled), caller, self._clock())

    def served(self, arrival: Arrival, name: str, attributes: Attributes, error: str = "") -> None:
        """Write the span of a request that was answered."""
        if arrival.span.sampled:
            when = (arrival.at, self._clock())
            self._write(name, arrival.span, arrival.caller, when, attributes, kind="SERVER", error=error)

    def came_with(self, ids: Iterable[str], request: TraceContext | None) -> None:
        """Remember in which request events came, so that their traces are linked with it."""
        if request is not None and request.sampled:
            self._came_with.update(dict.fromkeys(ids, request))

    def forget(self, ids: Iterable[str]) -> None:
        """Forget in which request these came: it has its answer."""
        for id in ids:
            self._came_with.pop(id, None)

    # --- recording --------------------------------------------------------------------------

    def call(self) -> CallTrace:
        """What one call of the recorder measures into."""
        return CallTrace(self._clock)

    def recorded(self, call: CallTrace, events: Iterable[tuple[str, Event, str]], receipts: Sequence[Receipt]) -> None:
        """Write the spans of events, each with its id and its cause, that a call has recorded; one receipt for each."""
        try:
            self._recorded(call, events, receipts)
        except Exception:
            log.exception("a call was recorded and could not be traced")

    def _recorded(self, call: CallTrace, events: Iterable[tuple[str, Event, str]], receipts: Sequence[Receipt]) -> None:
        now = self._clock()
        for (id, event, cause), receipt in zip(events, receipts, strict=True):
            request = self._came_with.get(id)
            if receipt.status != "accepted" or receipt.id != id:
                continue
            root = root_span(self._root(cause) if cause else id)
            if not self._samples(root.trace):
                continue
            began = min(event.received_at or now, now)
            known = {"threadline.event.id": id, "threadline.event.type": event.type, "threadline.source": event.source}
            shared = {**known, "threadline.workspace": event.workspace}
            if cause:
                span = self._write("record", None, root, (call.committed[0] or began, now), shared)
            else:
                span = self._write("ingest", root, None, (began, now), shared, kind="CONSUMER", link=request)
            self._write("commit", None, span, call.committed, {"threadline.commits": call.commits})
            for reacted in call.reacted.get(id, ()):
                about: Attributes = {
                    "threadline.policy": reacted.policy,
                    "threadline.cause": reacted.cause,
                    "threadline.wishes": reacted.wishes,
                }
                when = (reacted.began, reacted.ended)
                self._write(f"policy {reacted.policy}", None, span, when, about, error=reacted.error)

    # --- delivery ---------------------------------------------------------------------------

    @contextmanager
    def sending(self, pending: PendingEffect, queue: str) -> Iterator[Callable[[Outcome], Outcome]]:
        """The time in which an effect is sent, in the trace of the event that led to it; the outcome goes in."""
        root = root_span(self._root(pending.cause))
        if not self._samples(root.trace):
            yield lambda outcome: outcome
            return
        context = TraceContext(root.trace, self._ids.generate_span_id(), True)
        began, outcomes = self._clock(), list[Outcome]()

        def note(outcome: Outcome) -> Outcome:
            outcomes.append(outcome)
            return outcome

        token = CURRENT.set(context)
        try:
            yield note
        finally:
            CURRENT.reset(token)
            try:
                self._sent(pending, queue, context, (began, self._clock()), outcomes)
            except Exception:
                log.exception("an effect was sent and could not be traced")

    def _sent(
        self, pending: PendingEffect, queue: str, span: TraceContext, when: tuple[int, int], outcomes: Sequence[Outcome]
    ) -> None:
        about: dict[str, str | int | bool] = {
            "threadline.effect.id": pending.id,
            "threadline.effect.kind": pending.effect.kind,
            "threadline.queue": queue,
            "threadline.policy": pending.policy,
            "threadline.attempt": pending.attempts + 1,
        }
        due = min(due_of(pending.item), when[0])
        waited = self._write(
            f"outbox {pending.effect.kind}", None, root_span(self._root(pending.cause)), (due, when[0]), about
        )
        outcome = outcomes[-1] if outcomes else Outcome(type="raised", parked="raised")
        failed = outcome.parked or outcome.retry_after_seconds is not None or outcome.type == EFFECT_UNKNOWN
        about["threadline.outcome"] = outcome.type
        error = outcome.type if failed else ""
        self._write(f"send {pending.effect.kind}", span, waited, when, about, kind="CLIENT", error=error)

    # --- spans ------------------------------------------------------------------------------

    def _root(self, cause: str) -> str:
        """The event from outside, or of a timer, at the beginning of what led to this one."""
        root = self._roots.get(cause)
        if root is None:
            root = cause
            for _ in range(CAUSES_MAX):
                try:
                    entry = self._store.find([root]).get(root)
                    above = unpack_event(entry).cause if entry is not None else ""
                except ThreadlineError:
                    return root  # damaged, or the store is away: what is traced goes on all the same
                if not above:
                    break
                root = above
            if len(self._roots) >= ROOTS_REMEMBERED:
                self._roots.clear()
            self._roots[cause] = root
        return root

    def _samples(self, trace: int) -> bool:
        """Whether a trace that begins here is written: the same in every process with the same sampler."""
        decision = self._provider.sampler.should_sample(None, trace, "ingest").decision
        return bool(decision.is_sampled())  # type: ignore[no-untyped-call]

    def _write(
        self,
        name: str,
        own: TraceContext | None,
        parent: TraceContext | None,
        when: tuple[int, int],
        attributes: Attributes,
        *,
        kind: str = "INTERNAL",
        error: str = "",
        link: TraceContext | None = None,
    ) -> TraceContext:
        """Write a span that has ended; ``own`` are its ids if they were chosen before."""
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, NonRecordingSpan, SpanKind, set_span_in_context
        from opentelemetry.trace.status import Status, StatusCode

        if own is not None:
            self._ids.choose(own.trace, own.span)
        # An empty context where there is no parent: that of the process must not become one.
        context = set_span_in_context(NonRecordingSpan(_span_context(parent)), Context()) if parent else Context()
        links = [Link(_span_context(link))] if link else []
        span = self._tracer.start_span(
            name, context, SpanKind[kind], dict(attributes), links, start_time=when[0] * 1_000
        )
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(max(when) * 1_000)
        made = span.get_span_context()
        return TraceContext(made.trace_id, made.span_id, made.trace_flags.sampled)


def root_span(event: str) -> TraceContext:
    """The first span of the trace of an event: both ids follow from the event's, so every process knows them."""
    return TraceContext(int(event, 16), int(short_hash("span", event)[:16], 16), True)


def _span_context(of: TraceContext) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(of.trace, of.span, is_remote=True, trace_flags=TraceFlags(of.sampled))


def open_tracing(store: Store, clock: Clock, exporter: SpanExporter | None = None) -> Tracing:
    """Traces go to where the variables `OTEL_*` say, by OTLP over HTTP; or to an exporter, at once.

    Raises `InvalidSetting` without the extra.
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        hint = from_source("otel")
        raise InvalidSetting("tracing: OpenTelemetry is not installed", hint=hint)
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    ids = _Ids()
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "threadline"}))
    provider = TracerProvider(resource=resource, id_generator=ids)  # type: ignore[arg-type]
    spans: SpanProcessor
    if exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        spans = BatchSpanProcessor(OTLPSpanExporter())
    else:
        spans = SimpleSpanProcessor(exporter)
    provider.add_span_processor(spans)
    return Tracing(store, clock, provider, ids)
