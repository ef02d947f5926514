"""What users declare: which events make which facts, as plain frozen values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import EVERY_EVENT, Where
from threadline.capabilities.foundation.conditions.forms import WHERE_FORM
from threadline.capabilities.foundation.definitions import Definitions, Part
from threadline.capabilities.foundation.definitions.declaring import (
    Form,
    Given,
    Named,
    Problems,
    by_name,
    choice,
    duration,
    either,
    parsed,
    struct,
)
from threadline.capabilities.profile.features.definition import content, content_hash, events_of
from threadline.capabilities.profile.memory.events import FACT_RESTORED, FACT_RETRACTED
from threadline.capabilities.profile.memory.paths import Places, Template, Variable, keep, read_places, read_template
from threadline.kernel.errors import InvalidValue
from threadline.kernel.fixed import from_fixed, to_fixed
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import DERIVATIONS_MAX, FACT_KEY_LENGTH_MAX, FACTS_OF_DERIVATION_MAX
from threadline.kernel.suggestion import suggestion

TYPES = ("fact", "preference", "interest", "purchase", "support", "behavioral", "campaign", "form")
"""The types of facts."""

USER_DECLARED, EVENT_DERIVED, SYSTEM_COMPUTED, AGENT_INFERRED = SOURCES = (
    "user_declared",
    "event_derived",
    "system_computed",
    "agent_inferred",
)
"""Where a fact comes from, the strongest first."""

CERTAINTY = {
    USER_DECLARED: (1_000_000, 1_000_000),
    EVENT_DERIVED: (950_000, 950_000),
    SYSTEM_COMPUTED: (700_000, 900_000),
    AGENT_INFERRED: (500_000, 800_000),
}
"""Source -> (default confidence of one voice, its maximum), millionths."""

PERMANENT = ("computed", "insight", "remembered")
"""Derivations that ship and cannot be replaced: what `remember` records is read by them."""

AGGREGATES = {
    "count": "how many events made the fact",
    "sum": "the sum of a number, exact to a millionth",
    "first": "the value in the earliest event",
    "last": "the value in the latest event",
    "first_at": "when the earliest event occurred",
    "last_at": "when the latest event occurred",
    "average_interval_days": "days from one event to the next, on average",
}
"""Ways in which a field of a fact's value is made of several events."""

PLACED = frozenset({"sum", "first", "last"})
"""Aggregates that read something in each event."""

COUNTED = frozenset({"count", "first_at", "last_at"})
"""Aggregates of occurrences: an event that has what the key needs is enough for them."""


_EXAMPLES = ["total", "order.total", "name|product_name"]
PATH = parsed(read_places, "a path such as `total`, `order.total` or `name|product_name`", examples=_EXAMPLES)
_FACT_FORM = "written like preference/colour or purchase/product:{product_id}"


class Field(msgspec.Struct, frozen=True):
    """One field of a fact's value, made of several events."""

    name: Given
    aggregate: Annotated[str, choice(AGGREGATES)] = "last"
    of: Annotated[Places | None, PATH] = None
    times: Annotated[Places | None, PATH, Meta(description="A factor of a sum, such as a quantity.")] = None
    """Where it is absent it is 1."""
    currency: Annotated[Places | None, PATH, Meta(description="Keeps a sum per currency.")] = None

    def problems(self, written: Collection[str]) -> Problems:
        """What the aggregate does not take, or needs."""
        for key in ("of", "times", "currency"):
            if key in written and (self.aggregate not in PLACED if key == "of" else self.aggregate != "sum"):
                yield key, f"{self.aggregate!r} takes no `{key}`; remove it"
        if self.aggregate in PLACED and self.of is None:
            yield "", f"{self.aggregate!r} needs the path of a value; add `of: total`"


@dataclass(frozen=True, slots=True)
class Feed:
    """An event type that makes a fact, under which conditions, and constants that it puts into the value."""

    type: str
    where: Where = EVERY_EVENT
    constants: tuple[tuple[str, Any], ...] = ()


def _constant(part: Part) -> Any:
    if keep(part.value) is None:
        raise InvalidValue("must be a text, a number, true or false that a fact can hold")
    return part.value


_CONSTANT: Form[Any] = Form(
    (str, int, float, bool), "a text, a number, true or false", _constant, {"type": ["string", "number", "boolean"]}
)


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """How one type of events makes a fact."""

    where: Annotated[Where, WHERE_FORM] = EVERY_EVENT
    constants: Annotated[
        Mapping[str, Any],
        by_name(_CONSTANT),
        Meta(description="Constants that events of this type put into the value."),
    ] = msgspec.field(default={}, name="set")


def _fact(written: str) -> tuple[Template, Template] | None:
    type_text, slash, key_text = written.partition("/")
    type, key = read_template(type_text), read_template(key_text)
    if not slash or type is None or key is None:
        return None
    fixed = sum(len(part) for part in key if isinstance(part, str))
    if fixed > FACT_KEY_LENGTH_MAX - (key != (key_text,)):
        raise InvalidValue(f"a key has at most {FACT_KEY_LENGTH_MAX} characters")
    if key_text != key_text.strip():
        raise InvalidValue("a key must not begin or end with a blank")
    if type != (type_text,):
        if len(type) > 1 or not isinstance(type[0], Variable):
            raise InvalidValue("a type is a word or one variable")
        if key == (key_text,):
            raise InvalidValue("a type that varies needs a key that does, e.g. {type}/{key}")
    elif type_text not in TYPES:
        raise InvalidValue(f"unknown type {type_text!r}; {suggestion(type_text, TYPES)}")
    return type, key


def _confidence(part: Part) -> int:
    units = to_fixed(part.value)
    if units is None or units <= 0:
        raise InvalidValue("must be above 0")
    return units


def _field_of_path(part: Part) -> Field:
    return Field(part.name, "last", PATH.make(part))


_VALUE = either(
    PATH,
    by_name(either(Form(PATH.kinds, PATH.wanted, _field_of_path, PATH.schema), struct(Field)), least=1).then(
        lambda fields: tuple(sorted(fields.values(), key=lambda field: field.name))
    ),
)
_NUMBER = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
_FACT = parsed(
    _fact,
    _FACT_FORM,
    pattern=f"^({'|'.join(TYPES)}|\\{{[^{{}}]+\\}})/.+$",
    examples=["preference/colour", "purchase/product:{product_id}", "form/{form}:{question:slug}"],
)


class Derivation(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """How events make facts of one kind."""

    one_of: ClassVar[tuple[str, ...]] = ("value", "says")

    name: Given
    description: str = ""
    events: Annotated[Mapping[str, Making], events_of(Making, Making()), Meta(description="Types that make the fact.")]
    where: Annotated[Where, WHERE_FORM] = EVERY_EVENT
    each: Annotated[
        Places | None,
        PATH,
        Meta(title="Entries", description="A list or mapping in the event: every entry makes a fact."),
    ] = None
    otherwise: Annotated[
        tuple[tuple[str, Places], ...],
        by_name(PATH).then(lambda named: tuple(sorted(named.items()))),
        Meta(
            title="Entry of the event itself",
            description="The one entry, made of the event itself, where `each` is absent.",
        ),
    ] = ()
    fact: Annotated[tuple[Template, Template], _FACT, Meta(description="Type and key of the fact.")]
    source: Annotated[str, choice(SOURCES)] = EVENT_DERIVED
    made: Annotated[
        Places | tuple[Field, ...] | None, _VALUE, Meta(description="A path, or fields, each a path or an aggregate.")
    ] = msgspec.field(default=None, name="value")
    says: Annotated[
        Places | None,
        PATH,
        Meta(title="Statement", description="A value of which each source's newest statement is kept apart."),
    ] = None
    """Because sources may contradict each other."""
    confidence: Annotated[
        int | Places | None,
        either(PATH, Form((int, float), "a number above 0 and at most 1", _confidence, _NUMBER)),
        Meta(description="A number, or the path at which an event has it."),
    ] = None
    """Millionths, or the path in the event; None: the default in `CERTAINTY`."""
    expires_after: Annotated[int | None, duration(), Meta(description="After the newest event that made the fact.")] = (
        None
    )
    expires_at: Annotated[Places | None, PATH] = None
    recalled: Annotated[
        Places | None,
        PATH,
        Meta(
            title="Facts that are not taken again",
            description="Where an event names facts that are not taken from it again.",
        ),
    ] = None
    """Those that its producer had been given."""
    derived_from: Annotated[
        Places | None, PATH, Meta(description="Where an event names the facts that its own rests on.")
    ] = None
    most: Annotated[
        int,
        Meta(
            ge=1, le=FACTS_OF_DERIVATION_MAX, title="Most facts of a person", description="Facts kept for one person."
        ),
    ] = 100
    version: Annotated[int, Meta(ge=1)] = 1
    place: Given = ""

    def __post_init__(self) -> None:
        if self.each is not None:
            # Paths then begin in one entry of the list.
            for key in ("fact", "made", "says", "confidence", "expires_at", "recalled", "derived_from"):
                msgspec.structs.force_setattr(self, key, _of_entries(getattr(self, key)))

    @cached_property
    def type(self) -> Template:
        """The type of its facts."""
        return self.fact[0]

    @cached_property
    def key(self) -> Template:
        """The key of its facts."""
        return self.fact[1]

    @cached_property
    def value(self) -> Places | None:
        """Path of the value, where a fact's value is one thing."""
        return self.made if isinstance(self.made, Places) else self.says

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the value, where it is a mapping, by name."""
        return self.made if isinstance(self.made, tuple) else ()

    @cached_property
    def feeds(self) -> tuple[Feed, ...]:
        """The types of events that make it, by name."""
        return tuple(
            Feed(type, Where((*self.where.parts, *made.where.parts)), tuple(sorted(made.constants.items())))
            for type, made in sorted(self.events.items())
        )

    @property
    def content(self) -> dict[str, Any]:
        """All that shapes its facts, however it was written."""
        return content(
            self,
            ("place", "description", "events", "where", "fact"),
            feeds=self.feeds,
            type=self.type,
            key=self.key,
            value=self.value,
            fields=self.fields,
            says=bool(self.says),
        )

    def problems(self, written: Collection[str]) -> Problems:
        """What the fields cannot be together."""
        for type in self.events:
            if type == "any" or type.startswith(SYSTEM_PREFIX) or type in (FACT_RETRACTED, FACT_RESTORED):
                yield "events", f"{type!r} makes no facts; name types such as form_submitted"
        if self.each is not None and not any(isinstance(part, Variable) for part in self.key):
            yield "fact", f"entries of `each` need a key that varies, e.g. {''.join(map(str, self.key))}:{{id}}"
        if "otherwise" in written and self.each is None:
            yield "otherwise", "`otherwise` goes with `each` only; remove it"
        for key in ("recalled", "derived_from"):
            if key in written and self.says is None:
                yield key, f"`{key}` goes with `says` only; remove it"
        most = CERTAINTY[self.source][1]
        if isinstance(self.confidence, int) and self.confidence > most:
            yield "confidence", f"`confidence` is at most {from_fixed(most)} for {self.source}"
        yield from self._clashes()

    def _clashes(self) -> Problems:
        """Which constants have no place in the value, or the place of something else."""
        if self.constants and not self.fields:
            yield "events", "`set` puts fields into a value that is a mapping; this value is one thing"
            return
        names = {field.name for field in self.fields}
        for name in sorted(names.intersection(self.constants)):
            yield "events", f"field {name!r} is read from events and set as well; keep one, or name them differently"
        for field in self.fields:
            sums = f"{field.name}_by_currency"
            if field.aggregate == "sum" and field.currency is not None and sums in names.union(self.constants):
                clash = f"field {sums!r} is what the sum {field.name!r} is told as per currency"
                yield "value", f"{clash}; name it differently"

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Names of the fields that are constants, by name."""
        return tuple(sorted({name for feed in self.feeds for name, _ in feed.constants}))

    @cached_property
    def cells_by_name(self) -> tuple[tuple[str, str, int], ...]:
        """What a value that is a mapping holds, by name: name, how it is made, and its place among words or cells.

        A sum of money is shown twice: as ``sums``, and under ``…_by_currency`` as ``amounts``.
        """
        entries = []
        words = cells = 0
        for field in self.fields:
            money = field.aggregate == "sum" and field.currency is not None
            index = words if field.aggregate == "last" else cells
            entries.append((field.name, "sums" if money else field.aggregate, index))
            if money:
                entries.append((f"{field.name}_by_currency", "amounts", index))
            words += field.aggregate == "last"
            cells += field.aggregate in ("first", "sum")
        entries += [(name, "last", words + number) for number, name in enumerate(self.constants)]
        # Of equal names the last one counts.
        return tuple(sorted({name: (name, made, index) for name, made, index in entries}.values()))

    @cached_property
    def strength(self) -> int:
        """The position of its source in `SOURCES`: 0 is the strongest."""
        return SOURCES.index(self.source)

    @cached_property
    def usual(self) -> int:
        """How sure its facts are if no event says so, millionths."""
        return self.confidence if type(self.confidence) is int else CERTAINTY[self.source][0]


@dataclass(frozen=True)
class DerivationSet:
    """All derivations in force, by name."""

    derivations: tuple[Derivation, ...]

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything that shapes facts, the same however files and keys were arranged."""
        return content_hash([derivation.content for derivation in self.derivations])


def _of_entries(value: Any) -> Any:
    """The same with paths that begin in one entry of a list."""
    match value:
        case Places():
            return replace(value, of_entries=True)
        case Variable():
            return replace(value, places=_of_entries(value.places))
        case Field():
            return Field(value.name, value.aggregate, *map(_of_entries, (value.of, value.times, value.currency)))
        case tuple():
            return tuple(map(_of_entries, value))
    return value


MEMORY = Named(
    "memory",
    "derivation",
    struct(Derivation),
    "Derivations of facts by name; false leaves out one that ships.",
    "shoe_size",
    most=DERIVATIONS_MAX,
    ships="threadline.capabilities.profile.memory",
    permanent=PERMANENT,
)
SECTION = MEMORY.declared
KIND = MEMORY.kind


def load_derivations(paths: Iterable[str | Path] = ()) -> DerivationSet:
    """The shipped derivations with what these files, or all ``*.yaml`` and ``*.yml`` in these folders, declare.

    Raises `InvalidDefinition` with every problem in their section ``memory``, one a line.
    """
    return _alone(Definitions.load(paths))


def read_derivations(texts: Iterable[tuple[str, str]] = ()) -> DerivationSet:
    """As `load_derivations`, from pairs of a name for messages and the text."""
    return _alone(Definitions(texts))


def _alone(definitions: Definitions) -> DerivationSet:
    derivations = derivations_of(definitions)
    definitions.refuse()
    return derivations


def derivations_of(definitions: Definitions) -> DerivationSet:
    """The shipped derivations with what these definitions declare. Problems are noted in them, not raised."""
    return DerivationSet(tuple(MEMORY.read(definitions).values.values()))
