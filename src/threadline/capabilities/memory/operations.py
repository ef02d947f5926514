"""Memory as callers read it: facts by type or text, one fact, its lineage, and variables of templates."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import (
    Cursor,
    EventView,
    Instant,
    PersonRef,
    event_view,
    read_cursor,
    write_cursor,
)
from threadline.capabilities.events.instants import AsOf, Known, Then, then
from threadline.capabilities.memory.definition import SOURCES, TYPES, DerivationSet
from threadline.capabilities.memory.projection import facts_of, make_makers
from threadline.capabilities.memory.search import ranked
from threadline.capabilities.memory.sorting import RETRACTIONS
from threadline.capabilities.memory.variables import resolve
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.limits import EVENTS_PAGE_MAX, FACT_KEY_LENGTH_MAX
from threadline.kernel.lists import comma_separated
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import Person, WithReader
from threadline.kernel.time import format_duration

FactType = Literal["fact", "preference", "interest", "purchase", "support", "behavioral", "campaign", "form"]
FactKey = Annotated[
    str, Meta(description="The fact's key, e.g. last_transaction.", min_length=1, max_length=FACT_KEY_LENGTH_MAX)
]

# --- facts --------------------------------------------------------------------------------------


Value = Annotated[Any, Meta(description="A text, a number, true or false, a list or a mapping.")]
Source = Annotated[str, Meta(description=f"{', '.join(SOURCES)}; the earlier is the stronger.")]
Confidence = Annotated[float, Meta(description="0 to 1; docs/memory.md says how it is computed.", ge=0, le=1)]
UpdatedAt = Annotated[Instant, Meta(description="When the newest event that says so occurred.")]
ExpiresAt = Annotated[Instant | None, Meta(description="From this instant on the fact is gone.")]
Voices = Annotated[list[str], Meta(description="The voices that say so, by name.")]


class WordView(msgspec.Struct, kw_only=True):
    """What one or several sources say of a fact."""

    value: Value
    source: Source
    confidence: Confidence
    updated_at: UpdatedAt
    expires_at: ExpiresAt
    voices: Voices = []


class FactView(msgspec.Struct, kw_only=True):
    """One fact."""

    type: str
    key: str
    value: Value
    source: Source
    confidence: Confidence
    created_at: Annotated[Instant, Meta(description="When the first event that made it occurred.")]
    updated_at: UpdatedAt
    expires_at: ExpiresAt
    voices: Voices = []
    conflicts: Annotated[
        list[WordView], Meta(description="Other values: of weaker sources, or of equal ones less sure.")
    ]
    events: Annotated[int, Meta(description="How many events made it; `memory_lineage` lists them.")]
    source_event_ids: Annotated[list[str], Meta(description="The newest of them, the newest first.")]
    score: Annotated[float | None, Meta(description="How well it matches the search text.")] = None


class RetractedView(msgspec.Struct, kw_only=True):
    """A fact that was taken back, or that went with one."""

    type: str
    key: str
    retraction: Annotated[str, Meta(description="The event to undo; empty for what went with another fact.")]
    retracted_at: Instant
    because_of: Annotated[str, Meta(description="The retracted fact that it rested on, as type/key.")]


class MemoryParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose facts, which, and at which instant."""

    id: PersonRef
    type: Annotated[FactType | None, Meta(description="Only facts of this type.")] = None
    text: Annotated[
        str, Meta(description="Only facts that contain a word of this text, the best match first.", max_length=500)
    ] = ""
    limit: Annotated[int, Meta(description="Facts to tell.", ge=1, le=1_000)] = 1_000
    as_of: AsOf = None
    known: Known = "then"


class MemoryResult(msgspec.Struct, kw_only=True):
    """Facts by type and key, or ranked where a text is sought."""

    person: str
    position: Annotated[int, Meta(description="How many events the person has today.")]
    as_of: Instant
    facts: list[FactView]
    retracted: Annotated[list[RetractedView], Meta(description="Of the type asked for.")]


def memory_of(context: Context[WithReader], person: Person) -> dict[str, Any]:
    """The view of a person's memory now."""
    views = context.engine.reader.views(person, context.now, names=["memory"])
    memory: dict[str, Any] = views["memory"]
    return memory


def _read(context: Context[WithReader], params: MemoryParams | FactParams) -> tuple[Then, dict[str, Any]]:
    """Whose memory is asked for and as of when, and the memory."""
    asked = then(context, params.id, params.as_of, params.known)
    return asked, asked.views("memory")["memory"]


def _memory(context: Context[WithReader], params: MemoryParams) -> MemoryResult:
    asked, memory = _read(context, params)
    wanted = TYPES if params.type is None else (params.type,)
    found = [fact for type in sorted(wanted) for fact in memory.get(type, {}).values()]
    if params.text.strip():
        facts = [fact_view({**fact, "score": score}) for score, fact in ranked(found, params.text)]
    else:
        facts = [fact_view(fact) for fact in found]
    return MemoryResult(
        person=asked.person.id, position=asked.person.position, as_of=asked.shown_at,
        facts=facts[: params.limit],
        retracted=[RetractedView(**each) for each in memory["retracted"] if each["type"] in wanted],
    )  # fmt: skip


def fact_view(fact: dict[str, Any]) -> FactView:
    """A fact in the form in which it is read."""
    return FactView(**{**fact, "conflicts": [WordView(**each) for each in fact["conflicts"]]})


MEMORY = Operation(
    name="memory",
    summary="List the facts known about a person: all, of one type, or matching a text, now or at an instant.",
    params=MemoryParams,
    result=MemoryResult,
    run=_memory,
    method="GET",
    path="/v1/people/{id}/memory",
    example=MemoryParams(id="user_id:42", type="purchase"),
)


class FactParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which fact, and at which instant."""

    id: PersonRef
    type: FactType
    key: FactKey
    as_of: AsOf = None
    known: Known = "then"


def _fact(context: Context[WithReader], params: FactParams) -> FactView:
    _, memory = _read(context, params)
    return fact_view(found_fact(memory, params.type, params.key))


def found_fact(memory: dict[str, Any], type: str, key: str) -> dict[str, Any]:
    """The fact of this type and key. Raises `NotFound`, which says so where it was retracted."""
    fact: dict[str, Any] | None = memory.get(type, {}).get(key)
    if fact is None:
        gone = any(each["type"] == type and each["key"] == key for each in memory["retracted"])
        text = "was retracted" if gone else "is not known, or has expired"
        raise NotFound(f"the fact {type}/{key} {text}", hint="`memory` lists the facts there are")
    return fact


FACT = Operation(
    name="memory_fact",
    summary="Show one fact about a person, and what contradicts it.",
    params=FactParams,
    result=FactView,
    run=_fact,
    method="GET",
    path="/v1/people/{id}/memory/{type}/{key}",
    example=FactParams(id="user_id:42", type="purchase", key="last_transaction"),
)

# --- variables ----------------------------------------------------------------------------------


class VariablesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose facts, and the variables of a template."""

    id: PersonRef
    names: Annotated[str, Meta(description="Variables as type.key.path, separated by commas.", max_length=10_000)] = ""
    variables: Annotated[
        list[str],
        Meta(description="Variables, each taken literally, with any commas in it.", max_length=1_000),
    ] = []


class VariablesResult(msgspec.Struct, kw_only=True):
    """Values for a template."""

    person: str
    values: Annotated[dict[str, Any], Meta(description="Variable -> value; null for one without a value.")]
    missing: Annotated[list[str], Meta(description="The variables without a value.")]


def _variables(context: Context[WithReader], params: VariablesParams) -> VariablesResult:
    names = list(dict.fromkeys([*comma_separated(params.names), *params.variables]))
    if not names:
        raise InvalidValue("name the variables: in `names`, separated by commas, or one by one in `variables`")
    person = context.engine.reader.person(context.workspace, params.id)
    facts = memory_of(context, person)
    values = {name: resolve(facts, name) for name in names}
    return VariablesResult(person=person.id, values=values, missing=[name for name in names if values[name] is None])


VARIABLES = Operation(
    name="memory_variables",
    summary="Resolve template variables, such as purchase.last_transaction.product_name.",
    params=VariablesParams,
    result=VariablesResult,
    run=_variables,
    method="GET",
    path="/v1/people/{id}/variables",
    example=VariablesParams(id="user_id:42", names="purchase.last_transaction.product_name"),
)

# --- lineage ------------------------------------------------------------------------------------

_PAGES_MAX = 20
"""Pages of events looked through for one page of lineage: those of the same types may make other facts."""


class LineageParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of which fact, and where to go on."""

    id: PersonRef
    type: FactType
    key: FactKey
    cursor: Cursor = ""
    limit: Annotated[int, Meta(description="Events on a page.", ge=1, le=EVENTS_PAGE_MAX)] = 100


class LineagePage(msgspec.Struct, kw_only=True):
    """Events that made a fact, took it back or gave it back, newest first.

    A page may be short of its limit; it is the last only if ``next`` is empty.
    """

    person: str
    events: list[EventView]
    next: Annotated[str, Meta(description="The cursor of the next page; empty at the end.")] = ""


def lineage_operation(derivations: DerivationSet) -> Operation:
    """The operation that lists what made a fact, by these derivations."""
    makers = make_makers(derivations)
    types = derivations.event_types | RETRACTIONS

    def run(context: Context[WithReader], params: LineageParams) -> LineagePage:
        person = context.engine.reader.person(context.workspace, params.id)
        found: list[Any] = []
        after, wanted, size = read_cursor(params.cursor), (params.type, params.key), max(params.limit, 100)
        for _ in range(_PAGES_MAX):
            page = context.engine.reader.events(person, types=types, after=after, limit=size, reverse=True)
            for recorded in page:
                after = (recorded.event.occurred_at, recorded.id)
                if wanted in facts_of(makers, recorded):
                    found.append(recorded)
                    if len(found) == params.limit:
                        return _page(person, found, write_cursor(recorded))
            if len(page) < size:
                return _page(person, found, "")
        return _page(person, found, write_cursor(page[-1]))

    return Operation(
        name="memory_lineage",
        summary="List the events that made a fact, took it back or restored it.",
        params=LineageParams,
        result=LineagePage,
        run=run,
        method="GET",
        path="/v1/people/{id}/memory/{type}/{key}/events",
        example=LineageParams(id="user_id:42", type="purchase", key="last_transaction"),
    )


def _page(person: Person, found: list[Any], following: str) -> LineagePage:
    return LineagePage(person=person.id, events=[event_view(recorded) for recorded in found], next=following)


# --- definitions --------------------------------------------------------------------------------


class DerivationsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to choose."""


class DerivationView(msgspec.Struct, kw_only=True):
    """How events make facts of one kind."""

    name: str
    description: str
    events: list[str]
    fact: Annotated[str, Meta(description="Type and key; braces stand where an event puts something in.")]
    source: str
    fields: Annotated[dict[str, str], Meta(description="Fields of the value and how each is made.")]
    expires_after: str | None
    most: int
    version: int


class DerivationsResult(msgspec.Struct, kw_only=True):
    """Every derivation in force, by name."""

    fingerprint: Annotated[str, Meta(description="Changes with anything that shapes facts.")]
    derivations: list[DerivationView]


def derivations_operation(derivations: DerivationSet) -> Operation:
    """The operation that tells these derivations."""
    shown = [
        DerivationView(
            name=each.name, description=each.description, events=[feed.type for feed in each.feeds],
            fact=f"{_shape(each.type)}/{_shape(each.key)}", source=each.source,
            fields={f.name: f.aggregate for f in each.fields} | dict.fromkeys(each.constants, "constant"),
            expires_after=None if each.expires_after is None else format_duration(each.expires_after), most=each.most,
            version=each.version,
        )
        for each in derivations.derivations
    ]  # fmt: skip
    result = DerivationsResult(fingerprint=derivations.fingerprint, derivations=shown)
    return Operation(
        name="memory_definitions",
        summary="List the derivations in force and which facts each makes.",
        params=DerivationsParams,
        result=DerivationsResult,
        run=lambda context, params: result,
        method="GET",
        path="/v1/memory",
        example=DerivationsParams(),
    )


def _shape(template: Any) -> str:
    return "".join(
        part if isinstance(part, str) else "{" + "|".join(".".join(steps) for steps in part.places.steps) + "}"
        for part in template
    )
