"""What users declare: features with their sources, windows and rules for nothing, as plain frozen values."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from threadline.capabilities.conditions import EVERY_EVENT, Path, Where
from threadline.capabilities.conditions.forms import WHERE_FORM
from threadline.capabilities.definitions.declaring import (
    Form,
    Problems,
    Single,
    by_name,
    described,
    either,
    nothing,
    one_or_many,
    only,
    parsed,
    shared,
    struct,
    text,
)
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.time import DAY
from threadline.kernel.zones import zone_names

T = TypeVar("T")

ANY = "*"
"""Stands for every event type except system types and those a source excludes."""

Scalar = str | int | float | bool | None

ValueKind = Literal["none", "number", "money", "scalar", "key"]
"""What an event hands to a feature: nothing but itself, an amount, an amount in a currency, a plain value, a hash."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One way to turn events into a value: what it reads, whether it takes a window, its value of nothing."""

    meaning: str
    reads: ValueKind = "none"
    windowed: bool = True
    empty: Scalar = None
    composed: bool = False
    """Built on other features rather than on events."""


AGGREGATES: Mapping[str, Aggregate] = {
    "count": Aggregate("how many events", empty=0),
    "sum": Aggregate("the sum of a number, exact to a millionth", "number", empty=0),
    "average": Aggregate("the mean of a number", "number"),
    "min": Aggregate("the smallest number", "number"),
    "max": Aggregate("the largest number", "number"),
    "first": Aggregate("the value in the earliest event", "scalar"),
    "last": Aggregate("the value in the latest event", "scalar"),
    "distinct": Aggregate("how many different values", "key", empty=0),
    "any": Aggregate("whether there was an event", empty=False),
    "days_since": Aggregate("whole days since the latest event", windowed=False),
    "preferred_hour": Aggregate("the local hour, 0 to 23, with the most events"),
    "preferred_day": Aggregate("the local weekday, 1 (Monday) to 7, with the most events"),
    "ratio": Aggregate("one feature divided by another", composed=True),
    "score": Aggregate("0 to 100 from weighted, saturating features", windowed=False, empty=0, composed=True),
}


@dataclass(frozen=True, slots=True)
class Feed:
    """One event type that feeds a feature, with the path of the value in it and what must hold."""

    type: str
    path: Path = ()
    """Steps into the properties; a first step ``context`` leads into the context instead."""
    sign: int = 1
    where: Where = EVERY_EVENT


@dataclass(frozen=True, slots=True)
class Source:
    """All that feeds a feature; ``excluded`` types matter only beside the feed of `ANY`."""

    feeds: tuple[Feed, ...]
    excluded: tuple[str, ...] = ()


def _path(written: str) -> Path | None:
    steps = tuple(written.split("."))
    return steps if all(steps) and steps != ("context",) else None


_EXAMPLES = ["total", "order.total", "context.ip"]
PATH = parsed(_path, "the path of a property, such as `total`, `order.total` or `context.ip`", examples=_EXAMPLES)


class Taking(msgspec.Struct, frozen=True, kw_only=True):
    """How one type of events feeds the feature."""

    path: Annotated[Path, PATH, Meta(description="Path of the value in this type; `of` where it is absent.")] = (
        msgspec.field(default=(), name="value")
    )
    sign: Annotated[int, only(1, -1)] = 1
    where: Annotated[Where, WHERE_FORM] = EVERY_EVENT


TYPES = one_or_many(text())


def events_of(kind: type[T], options: T) -> Form[dict[str, T]]:
    """Types of events: one, a list, or a mapping to what is said of each of them."""

    def by_type(types: tuple[str, ...]) -> dict[str, T]:
        for name in types:
            if types.count(name) > 1:
                raise InvalidValue(f"names {name!r} twice; keep one")
        return dict.fromkeys(types, options)

    return either(TYPES.then(by_type), by_name(either(nothing(options), struct(kind)), least=1))


EVENTS = shared("events", events_of(Taking, Taking()), description="The types that feed it; any for every type.")


class Chosen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Which events something counts."""

    events: Annotated[Mapping[str, Taking], EVENTS] = {}
    excluded: Annotated[tuple[str, ...], TYPES, Meta(description="Types that `events: any` leaves out.")] = (
        msgspec.field(default=(), name="except")
    )
    where: Annotated[Where, WHERE_FORM] = EVERY_EVENT

    def source_of(self, path: Path = ()) -> Source:
        """What feeds it, with the path of the value where a type names none of its own."""
        feeds = [
            Feed(
                ANY if name == "any" else name,
                taking.path or path,
                taking.sign,
                Where((*self.where.parts, *taking.where.parts)) if taking.where else self.where,
            )
            for name, taking in self.events.items()
        ]
        return Source(tuple(sorted(feeds, key=lambda feed: feed.type)), tuple(sorted(self.excluded)))

    def problems(self, written: Collection[str]) -> Problems:
        """What is wrong with the types together."""
        for key, types in (("events", self.events), ("except", self.excluded)):
            for name in types:
                if name.startswith(SYSTEM_PREFIX):
                    yield key, f"`{key}`: {name!r} is an event of Threadline's own and feeds no features"
        if len(self.events) > 1 and "any" in self.events:
            yield "events", "`any` stands alone; remove the other events, or remove any"
        if self.excluded and "any" not in self.events:
            yield "except", "`except` goes with `events: any` only; remove it"


_ZONE = parsed(lambda name: name if name in zone_names() else None, "an IANA name such as Europe/Rome")
TIMEZONE = Single("timezone", described(_ZONE, description="IANA zone of events that name none.", default="UTC"))


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a score: weight × x ÷ (x + half), or weight × half ÷ (x + half) if ``falling``."""

    feature: str
    weight: float
    half: float
    falling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One declared feature. A ``hidden`` one was written inside a ratio and is not shown."""

    name: str
    aggregate: str
    source: Source | None = None
    currency: Path = ()
    window: int | None = None
    """Microseconds; None is a lifetime."""
    empty: Scalar = None
    unit: str = ""
    description: str = ""
    version: int = 1
    stale_after: int | None = None
    numerator: str = ""
    denominator: str = ""
    parts: tuple[Part, ...] = ()
    hidden: bool = False
    place: str = field(default="", compare=False)
    """File and line of the declaration, for messages."""
    empty_place: str = field(default="", compare=False)
    """File and line of `empty`, if it is declared."""

    @property
    def reads(self) -> ValueKind:
        """The kind of value it takes from events."""
        kind = AGGREGATES[self.aggregate].reads
        return "money" if kind == "number" and self.currency else kind

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the features it is built on."""
        return tuple(name for name in (self.numerator, self.denominator) if name) + tuple(
            part.feature for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Currencies:
    """How amounts of several currencies become one: ``rates[EUR] = "1.08"`` says that 1 EUR is 1.08 of ``total_in``."""

    total_in: str = ""
    default: str = ""
    """The currency of amounts that name none."""
    rates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureSet:
    """All features in force, each after those it is built on."""

    features: tuple[Feature, ...]
    currencies: Currencies = Currencies()
    timezone: str = "UTC"
    """The zone of events that name none."""
    ignored_after: int = 7 * DAY
    """A campaign delivered this long ago without engagement counts as ignored, microseconds."""

    @cached_property
    def by_name(self) -> dict[str, Feature]:
        """The features by name, hidden ones included."""
        return {feature.name: feature for feature in self.features}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that a view shows, in the order of the alphabet."""
        return tuple(sorted(feature.name for feature in self.features if not feature.hidden))

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything declared, the same however files and keys were arranged."""
        return content_hash(
            {
                "features": [
                    content(feature, ("place", "empty_place"))
                    for feature in sorted(self.features, key=lambda feature: feature.name)
                ],
                "currencies": self.currencies,
                "timezone": self.timezone,
                "ignored_after": self.ignored_after,
            }
        )


def content_hash(value: object, size: int = 8) -> str:
    """Hex digits of a hash over the canonical form of plain values and dataclasses, `Where` among them."""
    written = msgspec.json.encode(value, order="deterministic", enc_hook=_content_of_where)
    return hashlib.blake2b(written, digest_size=size).hexdigest()


def content(declared: object, omitted: Collection[str], **more: object) -> dict[str, object]:
    """What a declaration holds as plain values, without fields that shape nothing, with ``more``."""
    fields: dict[str, object] = msgspec.to_builtins(declared, enc_hook=_content_of_where)
    computed: dict[str, object] = msgspec.to_builtins(more, enc_hook=_content_of_where)
    return {name: value for name, value in fields.items() if name not in omitted} | computed


def _content_of_where(value: Where) -> list[Any]:
    return value.content


def number_path(text: str) -> tuple[str, ...]:
    """Where a number of a person stands, from how files of definitions write it: of a feature that is its value."""
    path = tuple(text.split("."))
    return (*path, "value") if path[0] == "features" and len(path) == 2 else path
