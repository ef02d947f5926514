"""What became of a message: accepted and what followed from it, rejected and why, or both under one key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.consequences import Consequence, consequences, status_of
from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.capabilities.decide.rules.policy import POLICY
from threadline.capabilities.decide.rules.projection import decision_of
from threadline.capabilities.foundation.events.forms import EventView, event_view
from threadline.capabilities.foundation.events.rejected import RejectedView, rejected_view
from threadline.kernel.disclosure import NOT_PERSONAL, not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded, key_of_name
from threadline.kernel.limits import EVENTS_PAGE_MAX
from threadline.kernel.operation import Context, Group, Params, operation
from threadline.kernel.ports import Person, Ports
from threadline.kernel.rejected import KEY_LENGTH_MAX

MESSAGES_GROUP = Group("messages", "What happened to a message that a client sent.")

REJECTED_LOOKED_AT_MAX = 5_000
"""Entries of the rejected log, newest first, that are looked through for a message."""
_REJECTED_PAGE = 500


class MessageParams(Params, kw_only=True):
    """Which message: by the key that its producer gave it."""

    message_id: Annotated[
        str,
        Meta(
            description="The messageId, or whatever key the event was sent with; of a CloudEvent its source, a blank "
            "and its id.",
            min_length=1,
            max_length=KEY_LENGTH_MAX,
        ),
    ]
    source: Annotated[
        str,
        Meta(
            description="The name of the write key or token it came through; without it every one that is known.",
            max_length=200,
        ),
    ] = ""


class MessageEffect(Consequence, kw_only=True):
    """Something that a policy sends because of the message, and how that stands.

    Of a policy other than `rules`, `action` is the kind of effect, and `wished` is known as long as it waits.
    """

    policy: Annotated[str, Meta(description="The policy that sends it.")]
    decision: Annotated[str, Meta(description="The decision behind it, one of those in `caused`; empty without one.")]


@not_personal
class Message(msgspec.Struct, kw_only=True):
    """The outcome of a message."""

    message_id: Annotated[str, NOT_PERSONAL]
    outcome: Annotated[
        str,
        Meta(description="accepted; conflict: accepted, and sent again with another payload; rejected: not recorded."),
    ]
    event: EventView | None = None
    person: Annotated[str, Meta(description="Whose it is now.")] = ""
    position: Annotated[int, Meta(description="How many events that person has now.")] = 0
    touched: Annotated[list[str], Meta(description="The projections that events of this type change.")] = []
    caused: Annotated[
        list[EventView], Meta(description="The events that Threadline added because of it, and because of those.")
    ] = []
    effects: Annotated[
        list[MessageEffect], Meta(description="What is sent because of it, waits to be sent, or could not be sent.")
    ] = []
    rejected: Annotated[list[RejectedView], Meta(description="What was refused under this key, newest first.")] = []


@operation(
    "GET /v1/messages/{message_id}", MESSAGES_GROUP, example=MessageParams(message_id="order-1001", source="shop")
)
def show(context: Context, params: MessageParams) -> Message:
    """Show what happened to a message: its event, its person, what followed, or why it was refused."""
    recorded = _accepted(context, params)
    refused = _refused(context, params)
    if recorded is None:
        if not refused:
            where = f"from source {params.source!r}" if params.source else "from any source known here"
            raise NotFound(
                f"no message {params.message_id[:64]!r} came {where}",
                hint="name the source it came through; ask for a CloudEvent by its source, a blank and its id",
            )
        return Message(message_id=params.message_id, outcome="rejected", rejected=refused)
    engine = context.engine
    person = engine.reader.person_of(recorded)
    caused = _caused(engine, person, recorded)
    return Message(
        message_id=params.message_id,
        outcome="conflict" if any(entry.event_id == recorded.id for entry in refused) else "accepted",
        event=event_view(recorded, person.id),
        person=person.id,
        position=person.position,
        touched=engine.catalogue.folds(recorded.event),
        caused=[event_view(event) for event in caused],
        effects=[*_effects_of_rules(context, caused), *_effects_of_others(context, [recorded, *caused])],
        rejected=refused,
    )


def _keys(message_id: str) -> list[str]:
    """The keys that a message of this name may have been recorded under."""
    return list(dict.fromkeys([message_id, key_of_name(message_id)]))


def _accepted(context: Context, params: MessageParams) -> Recorded | None:
    sources = [params.source] if params.source else _sources(context)
    recorded: Recorded | None = context.engine.log.of_keys(context.workspace, sources, _keys(params.message_id))
    return recorded


def _sources(context: Context) -> list[str]:
    """The sources that this workspace knows, the caller's own first."""
    return list(dict.fromkeys([context.source, "direct", *context.engine.log.sources(context.workspace)]))


def _refused(context: Context, params: MessageParams) -> list[RejectedView]:
    views: list[RejectedView] = []
    keys, cursor = _keys(params.message_id), ""
    for _ in range(REJECTED_LOOKED_AT_MAX // _REJECTED_PAGE):
        page = context.engine.rejected.page(context.workspace, cursor, _REJECTED_PAGE)
        views += [
            rejected_view(entry)
            for _, entry in page
            if params.source in ("", entry.source)
            and (entry.key in keys or params.message_id in _candidate_keys(entry.payload))
        ]
        if len(page) < _REJECTED_PAGE:
            break
        cursor = page[-1][0]
    return views


def _candidate_keys(payload: Any) -> list[Any]:
    # Entries of older versions have no key of their own: these are the names under which the wires tell theirs.
    return [payload.get(name) for name in ("key", "messageId", "id")] if isinstance(payload, dict) else []


def _caused(engine: Ports, person: Person, cause: Recorded) -> list[Recorded]:
    """The events that came of an event, in the order of recording.

    They commit together with it. They occurred where the policy says, at its own time or later, or at the instant of
    recording, which for history lies far from it: those two places are looked at, a page each.
    """
    pool: dict[str, Recorded] = {}
    for start in (cause.event.occurred_at, cause.recorded_at):
        page = engine.reader.events(person, start=start, limit=EVENTS_PAGE_MAX)
        pool.update((event.id, event) for event in page if event.cause and event.recorded_at >= cause.recorded_at)
    events: dict[str, Recorded] = {}
    causes = {cause.id}
    while more := {id: event for id, event in pool.items() if id not in events and event.cause in causes}:
        events.update(more)
        causes |= more.keys()
    return sorted(events.values(), key=lambda event: (event.recorded_at, event.thread, event.sequence))


def _effects_of_rules(context: Context, caused: Sequence[Recorded]) -> Iterator[MessageEffect]:
    for decision in caused:
        if decision.event.type == DECISION_MADE and decision_of(decision) is not None:
            for consequence in consequences(context, decision):
                if consequence.effect:
                    yield MessageEffect(policy=POLICY, decision=decision.id, **msgspec.structs.asdict(consequence))


def _effects_of_others(context: Context, events: Sequence[Recorded]) -> Iterator[MessageEffect]:
    for effect in context.engine.delivery.caused_by(events, POLICY):
        yield MessageEffect(
            policy=effect.policy,
            decision="",
            action=effect.kind,
            wished=effect.data,
            status=status_of(effect.status),
            effect=effect.status.id,
            outcomes=[event_view(outcome) for outcome in effect.status.outcomes],
        )
