"""Facts stated, retracted and restored by callers: each is an event in the thread."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.events import AGENT_INSIGHT
from threadline.capabilities.foundation.events.forms import EventId, PersonRef, Time, checked_id, instant
from threadline.capabilities.foundation.events.requests import WISHES, RequestKey, derived_key, place_and_key, wish
from threadline.capabilities.profile.memory.definition import AGENT_INFERRED, SYSTEM_COMPUTED, TYPES, USER_DECLARED
from threadline.capabilities.profile.memory.events import FACT_COMPUTED, FACT_REMEMBERED, FACT_RESTORED, FACT_RETRACTED
from threadline.capabilities.profile.memory.operations import MEMORY_GROUP
from threadline.capabilities.profile.memory.operations.facts import (
    FactKey,
    FactType,
    FactView,
    fact_view,
    found_fact,
    memory_of,
)
from threadline.capabilities.profile.memory.paths import keep
from threadline.kernel.canonical import canonical_json
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import Conflict, InvalidValue, LimitExceeded
from threadline.kernel.event import Receipt
from threadline.kernel.limits import FACT_VALUE_BYTES_MAX, FACTS_RETRACTED_MAX
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.time import parse_time

FactIds = Annotated[list[Annotated[str, Meta(max_length=150)]], Meta(description="Facts as type/key.", max_length=8)]


def _known(context: Context, person: str) -> dict[str, Any]:
    """Memory with what was just recorded in it."""
    again = context.engine.reader.person(context.workspace, person)
    memory: dict[str, Any] = context.engine.reader.views(again, context.engine.recorder.now(), names=["memory"])[
        "memory"
    ]
    return memory


# --- remember -----------------------------------------------------------------------------------

_TYPES = {USER_DECLARED: FACT_REMEMBERED, SYSTEM_COMPUTED: FACT_COMPUTED, AGENT_INFERRED: AGENT_INSIGHT}


class RememberParams(Params, kw_only=True):
    """The fact, its person and its source."""

    id: PersonRef
    type: FactType
    key: FactKey
    value: Annotated[
        Any,
        Meta(
            description=f"Anything but null, of at most {FACT_VALUE_BYTES_MAX} bytes.",
            extra_json_schema={"not": {"type": "null"}},
        ),
    ]
    source: Annotated[
        Literal["user_declared", "system_computed", "agent_inferred"],
        Meta(description="Who says so; what events say is derived from them."),
    ] = "user_declared"
    confidence: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="How sure; not for user_declared. Capped at the maximum of its source."),
    ] = None
    expires_at: Annotated[Time | None, Meta(description="The instant from which the fact is gone.")] = None
    derived_from: FactIds = []
    request: RequestKey = ""


class RememberResult(msgspec.Struct, kw_only=True):
    """The receipt of the event, and the fact as it stands now: a stronger source may say otherwise."""

    person: str
    receipt: Receipt
    fact: Annotated[
        FactView | None, Meta(description="Null where it has expired, or where no more facts of its source are kept.")
    ]
    applied: Annotated[
        bool,
        Meta(description="False: it is in the thread, but too many facts of its source are known, or it has expired."),
    ]


@operation(
    "POST /v1/people/{id}/memory",
    MEMORY_GROUP,
    private=frozenset({"value"}),
    done=("Noted the {type} {key}",),
    scope="write",
    example=RememberParams(id="user_id:42", type="preference", key="colour", value="blue"),
    refused=lambda result: result.receipt.status == "rejected",
)
def remember(context: Context, params: RememberParams) -> RememberResult:
    """State a fact about a person: what they said, what a system computed, what an agent inferred."""
    type = _TYPES[params.source]
    if params.source == USER_DECLARED and params.confidence is not None:
        raise InvalidValue(
            "what a person says of themselves is certain; leave out `confidence`, or give another source",
            param="confidence",
        )
    if params.key != params.key.strip():
        raise InvalidValue("a key must not begin or end with a blank", param="key")
    if params.value is None:
        raise InvalidValue("a fact cannot be null; to take one back use `retract`", param="value")
    if keep(params.value) is None:
        raise LimitExceeded(f"a value has at most {FACT_VALUE_BYTES_MAX} bytes and numbers of 64 bits")
    person = context.engine.reader.person(context.workspace, params.id)
    properties = {"type": params.type, "key": params.key, "value": params.value}
    if params.confidence is not None:
        properties["confidence"] = params.confidence
    if params.expires_at is not None:
        properties["expires_at"] = instant(parse_time(params.expires_at))
    if params.derived_from:
        properties["derived_from"] = params.derived_from
    text = canonical_json(properties).decode()
    request = params.request or f"at {person.position} {text}"
    # The source is part of the statement: each agent is a voice of its own.
    source = context.source
    identifier, key = place_and_key(context, person, type, request, named=params.request, source=source)
    event = wish(context, identifier, type, properties, key, source=source)
    receipt = context.engine.recorder.record([event], known=True)[0]
    fact = _known(context, person.id).get(params.type, {}).get(params.key)
    # A new event is among the newest of its fact; a duplicate may not be any more.
    applied = fact is not None and (receipt.status == "duplicate" or receipt.id in fact["source_event_ids"])
    fact = None if fact is None else fact_view(fact)
    return RememberResult(person=person.id, receipt=receipt, fact=fact, applied=applied)


# --- retract and undo ---------------------------------------------------------------------------


class RetractParams(Params, kw_only=True):
    """Which fact to take back, and why."""

    id: PersonRef
    type: FactType
    key: FactKey
    reason: Annotated[str, Meta(description="Why; it is kept in the event.", max_length=500)] = ""
    request: RequestKey = ""


@not_personal
class RetractResult(msgspec.Struct, kw_only=True):
    """The retraction, and all facts that it took away."""

    person: str
    receipt: Annotated[Receipt, Meta(description="Its id is what `unretract` takes.")]
    gone: Annotated[list[str], Meta(description="Facts that are gone, as type/key, those that rested on it included.")]


@operation(
    "POST /v1/people/{id}/memory/{type}/{key}/retract",
    MEMORY_GROUP,
    done=("Took the {type} {key} back",),
    scope="write",
    example=RetractParams(id="user_id:42", type="preference", key="colour", reason="it was a present"),
)
def retract(context: Context, params: RetractParams) -> RetractResult:
    """Retract a fact, and everything derived from it."""
    person = context.engine.reader.person(context.workspace, params.id)
    before = memory_of(context, person)
    named = params.request
    parts = (FACT_RETRACTED, params.type, params.key, named or f"at {person.position}")
    identifier, key = place_and_key(context, person, *parts, named=named)
    if context.engine.log.of_key(context.workspace, WISHES, key) is None:
        found_fact(before, params.type, params.key)
        if sum(1 for entry in before["retracted"] if entry["retraction"]) >= FACTS_RETRACTED_MAX:
            raise LimitExceeded(f"{FACTS_RETRACTED_MAX} facts of this person are retracted; no more can be")
    properties = {"type": params.type, "key": params.key} | ({"reason": params.reason} if params.reason else {})
    event = wish(context, identifier, FACT_RETRACTED, properties, key)
    receipt = context.engine.recorder.record([event], known=True)[0]
    left = _ids(_known(context, person.id))
    return RetractResult(person=person.id, receipt=receipt, gone=[id for id in _ids(before) if id not in left])


def _ids(memory: dict[str, Any]) -> list[str]:
    return [f"{type}/{key}" for type in TYPES for key in memory.get(type, {})]


class UnretractParams(Params, kw_only=True):
    """Which retraction to undo."""

    id: EventId


@not_personal
class UnretractResult(msgspec.Struct, kw_only=True):
    """The undoing, and all facts that are back."""

    person: str
    receipt: Receipt
    back: Annotated[list[str], Meta(description="Facts that are back, as type/key.")]


@operation(
    "POST /v1/events/{id}/unretract",
    MEMORY_GROUP,
    done=("Put a fact back that was taken back",),
    scope="write",
    example=UnretractParams(id="0123456789abcdef0123456789abcdef"),
)
def unretract(context: Context, params: UnretractParams) -> UnretractResult:
    """Undo a retraction: the fact is back, and everything that went with it."""
    engine = context.engine
    retraction = engine.log.event(context.workspace, checked_id(params.id))
    if retraction.event.type != FACT_RETRACTED:
        raise Conflict(f"event {params.id} is a {retraction.event.type}, not a retraction")
    person = engine.reader.person_of(retraction)
    before = _ids(memory_of(context, person))
    properties = {
        "type": retraction.event.properties["type"],
        "key": retraction.event.properties["key"],
        "retraction": retraction.id,
        "retracted_at": retraction.event.occurred_at,
    }
    # A retraction can be undone once, so its own id names the wish.
    key = derived_key(FACT_RESTORED, retraction.id)
    # It goes where the retraction is: with it if people are parted, and the same wish whoever they have become.
    identifier = person.identifiers[retraction.thread]
    receipt = engine.recorder.record([wish(context, identifier, FACT_RESTORED, properties, key)], known=True)[0]
    back = [id for id in _ids(_known(context, person.id)) if id not in before]
    return UnretractResult(person=person.id, receipt=receipt, back=back)
