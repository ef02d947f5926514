"""Facts: the memory of a person, and one fact with its reasons."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef
from threadline.capabilities.foundation.events.instants import PersonAsOf, person_as_of
from threadline.capabilities.foundation.events.parameters import KnownAsOf
from threadline.capabilities.profile.memory.definition import SOURCES, TYPES
from threadline.capabilities.profile.memory.operations import MEMORY_GROUP
from threadline.capabilities.profile.memory.search import ranked
from threadline.kernel.disclosure import FREE, free, not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import FACT_KEY_LENGTH_MAX
from threadline.kernel.operation import Context, operation
from threadline.kernel.ports import Person
from threadline.kernel.suggestion import nearest

FactType = Literal["fact", "preference", "interest", "purchase", "support", "behavioral", "campaign", "form"]
FactKey = Annotated[
    str, Meta(description="The fact's key, e.g. last_transaction.", min_length=1, max_length=FACT_KEY_LENGTH_MAX)
]


Value = Annotated[Any, Meta(description="A text, a number, true or false, a list or a mapping.")]
Source = Annotated[str, Meta(description=f"{', '.join(SOURCES)}; the earlier is the stronger.")]
Confidence = Annotated[float, Meta(description="0 to 1; docs/memory.md says how it is computed.", ge=0, le=1)]
UpdatedAt = Annotated[Instant, Meta(description="When the newest event that says so occurred.")]
ExpiresAt = Annotated[Instant | None, Meta(description="From this instant on the fact is gone.")]
Voices = Annotated[list[str], Meta(description="The voices that say so, by name.")]


@key_fields("value", "confidence", "updated_at", "source")
@not_personal
class ConflictView(msgspec.Struct, kw_only=True):
    """What one or several sources say of a fact."""

    value: Annotated[Value, FREE]
    source: Source
    confidence: Confidence
    updated_at: UpdatedAt
    expires_at: ExpiresAt
    voices: Voices = []


@not_personal
class FactView(msgspec.Struct, kw_only=True):
    """One fact."""

    type: str
    key: str
    value: Annotated[Value, free(named_by="key")]
    source: Source
    confidence: Confidence
    created_at: Annotated[Instant, Meta(description="When the first event that made it occurred.")]
    updated_at: UpdatedAt
    expires_at: ExpiresAt
    voices: Voices = []
    conflicts: Annotated[
        list[ConflictView], Meta(description="Other values: of weaker sources, or of equal ones less sure.")
    ]
    events: Annotated[int, Meta(description="How many events made it; `memory_lineage` lists them.")]
    source_event_ids: Annotated[list[str], Meta(description="The newest of them, the newest first.")]
    score: Annotated[float | None, Meta(description="How well it matches the search text.")] = None


@not_personal
class RetractedView(msgspec.Struct, kw_only=True):
    """A fact that was taken back, or that went with one."""

    type: str
    key: str
    retraction: Annotated[str, Meta(description="The event to undo; empty for what went with another fact.")]
    retracted_at: Instant
    because_of: Annotated[str, Meta(description="The retracted fact that it rested on, as type/key.")]


class MemoryParams(KnownAsOf, kw_only=True):
    """Whose facts, which, and at which instant."""

    id: PersonRef
    type: Annotated[FactType | None, Meta(description="Only facts of this type.")] = None
    text: Annotated[
        str, Meta(description="Only facts that contain a word of this text, the best match first.", max_length=500)
    ] = ""
    limit: Annotated[int, Meta(description="Facts to tell.", ge=1, le=1_000)] = 1_000


class MemoryResult(msgspec.Struct, kw_only=True):
    """Facts by type and key, or ranked where a text is sought."""

    person: str
    position: Annotated[int, Meta(description="How many events were ever recorded of the person, erased ones too.")]
    as_of: Instant
    facts: list[FactView]
    retracted: Annotated[list[RetractedView], Meta(description="Of the type asked for.")]


def memory_of(context: Context, person: Person) -> dict[str, Any]:
    """The view of a person's memory now."""
    views = context.engine.reader.views(person, context.now, names=["memory"])
    memory: dict[str, Any] = views["memory"]
    return memory


def _read(context: Context, params: MemoryParams | FactParams) -> tuple[PersonAsOf, dict[str, Any]]:
    """Whose memory is asked for and as of when, and the memory."""
    asked = person_as_of(context, params.id, params.as_of, params.known)
    return asked, asked.views("memory")["memory"]


@operation("GET /v1/people/{id}/memory", MEMORY_GROUP, example=MemoryParams(id="user_id:42", type="purchase"))
def of(context: Context, params: MemoryParams) -> MemoryResult:
    """List the facts known about a person: all, of one type, or matching a text, now or at an instant."""
    asked, memory = _read(context, params)
    wanted = TYPES if params.type is None else (params.type,)
    selected = [fact for type in sorted(wanted) for fact in memory.get(type, {}).values()]
    if params.text.strip():
        facts = [fact_view({**fact, "score": score}) for score, fact in ranked(selected, params.text)]
    else:
        facts = [fact_view(fact) for fact in selected]
    return MemoryResult(
        person=asked.person.id,
        position=asked.person.position,
        as_of=asked.shown_at,
        facts=facts[: params.limit],
        retracted=[RetractedView(**entry) for entry in memory["retracted"] if entry["type"] in wanted],
    )


def fact_view(fact: dict[str, Any]) -> FactView:
    """A fact in the form in which it is read."""
    return FactView(**{**fact, "conflicts": [ConflictView(**conflict) for conflict in fact["conflicts"]]})


class FactParams(KnownAsOf, kw_only=True):
    """Which fact, and at which instant."""

    id: PersonRef
    type: FactType
    key: FactKey


@operation(
    "GET /v1/people/{id}/memory/{type}/{key}",
    MEMORY_GROUP,
    example=FactParams(id="user_id:42", type="purchase", key="last_transaction"),
)
def fact(context: Context, params: FactParams) -> FactView:
    """Show one fact about a person, and what contradicts it."""
    _, memory = _read(context, params)
    return fact_view(found_fact(memory, params.type, params.key))


def found_fact(memory: dict[str, Any], type: str, key: str) -> dict[str, Any]:
    """The fact of this type and key. Raises `NotFound`, which says so where it was retracted."""
    fact: dict[str, Any] | None = memory.get(type, {}).get(key)
    if fact is None:
        gone = any(entry["type"] == type and entry["key"] == key for entry in memory["retracted"])
        text = "was retracted" if gone else "is not known, or has expired"
        near = None if gone else nearest(key, memory.get(type, ()))
        meant = f"; did you mean {near!r}?" if near is not None else ""
        raise NotFound(
            f"the fact {type}/{key} {text}{meant}", param="key", hint="`memory_of` lists the facts there are"
        )
    return fact
