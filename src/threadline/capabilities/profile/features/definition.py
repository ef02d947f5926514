"""What users declare: features with their sources, windows and rules for nothing, as plain frozen values."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from math import isfinite
from pathlib import Path as FilePath
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import EVERY_EVENT, Path, Where
from threadline.capabilities.foundation.conditions.forms import WHERE_FORM
from threadline.capabilities.foundation.definitions import Definitions, Part
from threadline.capabilities.foundation.definitions.declaring import (
    DECIMAL,
    Declarations,
    Form,
    Given,
    Named,
    Problems,
    Single,
    by_name,
    choice,
    described,
    duration,
    either,
    event_type,
    naming,
    nothing,
    one_or_many,
    only,
    parsed,
    positive,
    shared,
    struct,
    text,
)
from threadline.capabilities.profile.features.campaigns import CAMPAIGN_IGNORED
from threadline.kernel.calendar import zone_names
from threadline.kernel.errors import InvalidValue
from threadline.kernel.fixed import CURRENCY_LENGTH_MAX, read_currency
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import FEATURES_MAX
from threadline.kernel.names import PROPERTY, property_name
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import DAY, MINUTE, YEAR

_EMPTY_MAX = 10**15
"""Where nothing is known, ratios and scores compute with numbers below this: larger ones do not fit a float."""

T = TypeVar("T")

ANY = "*"
"""Stands for every event type except system types and those a source excludes."""

Scalar = str | int | float | bool | None

ValueKind = Literal["none", "number", "money", "scalar", "nullable", "key"]
"""What an event hands to a feature: nothing but itself, an amount, an amount in a currency, a plain value, the same or
null, a hash."""


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
PATH = naming(
    PROPERTY,
    parsed(_path, "the path of a property, such as `total`, `order.total` or `context.ip`", examples=_EXAMPLES),
    lambda path: "" if path[0] == "context" else property_name(path),
)


class Taking(msgspec.Struct, frozen=True, kw_only=True):
    """How one type of events feeds the feature."""

    path: Annotated[Path, PATH, Meta(description="Path of the value in this type; `of` where it is absent.")] = (
        msgspec.field(default=(), name="value")
    )
    sign: Annotated[int, only(1, -1)] = 1
    where: Annotated[Where, WHERE_FORM] = EVERY_EVENT


TYPES = one_or_many(event_type())


def events_of(kind: type[T], options: T) -> Form[dict[str, T]]:
    """Types of events: one, a list, or a mapping to what is said of each of them."""

    def by_type(types: tuple[str, ...]) -> dict[str, T]:
        for name in types:
            if types.count(name) > 1:
                raise InvalidValue(f"names {name!r} twice; keep one")
        return dict.fromkeys(types, options)

    return either(TYPES.then(by_type), by_name(either(nothing(options), struct(kind)), event_type(), least=1))


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
TIMEZONE = Single(
    "timezone",
    described(_ZONE, description="IANA zone of events that name none.", default="UTC"),
    frozenset({"features", "journeys", "points", "streaks"}),
)

_EVERYWHERE = ("aggregate", "description", "unit", "version", "empty", "stale_after")
_NEEDED = {"ratio": ("numerator", "denominator"), "score": ("parts",)}


def allowed_keys(aggregate: str) -> tuple[str, ...]:
    """The keys that a feature with this aggregate may have."""
    rules = AGGREGATES[aggregate]
    keys = [*_EVERYWHERE, *(["window"] if rules.windowed else [])]
    if rules.composed:
        return (*keys, *_NEEDED[aggregate])
    keys += ["events", "except", "where"]
    if rules.reads != "none":
        keys.append("of")
    if rules.reads == "number":
        keys.append("currency")
    if rules.reads == "scalar":
        keys.append("nulls")
    return tuple(keys)


def _plain(part: Part) -> Scalar:
    if isinstance(part.value, float) and not isfinite(part.value):
        raise InvalidValue("must be a single text, number, true, false or null")
    value: Scalar = part.value
    return value


def _window(part: Part) -> int:
    try:
        return LIFETIME if part.value == "lifetime" else _SIZE.make(part)
    except InvalidValue as error:
        raise InvalidValue(f"{error}; or write `lifetime` for all time") from None


LIFETIME = 0
_SIZE = duration(MINUTE, 10 * YEAR)
_WINDOW = Form((str,), f"{_SIZE.wanted}, or `lifetime`", _window, {"oneOf": [{"const": "lifetime"}, _SIZE.schema]})
_EMPTY = Form(
    (str, int, float, bool, NoneType),
    "a single text, number, true, false or null",
    _plain,
    {"type": ["string", "number", "boolean", "null"]},
)


def _in_place(part: Part) -> Feature:
    return _FEATURE.read(part)


_SIDE: Form[Any] = either(
    text("the name of a feature"), Form((dict,), "a feature in place", _in_place, {"$ref": "#/$defs/feature"})
)


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One term of a score: weight × x ÷ (x + half), or weight × half ÷ (x + half) if ``falling``."""

    feature: Given
    weight: Annotated[float, positive(), Meta(examples=[30])]
    half: Annotated[float, positive(), Meta(examples=[14])]
    falling: bool = False


_PARTS = by_name(struct(Term), least=1).then(lambda parts: tuple(sorted(parts.values(), key=lambda part: part.feature)))


class Feature(Chosen, frozen=True, kw_only=True):
    """One declared feature."""

    name: Given
    aggregate: Annotated[str, choice(AGGREGATES), Meta(description="How events become a value.", examples=["count"])]
    of: Annotated[Path, PATH, Meta(title="Property", description="Which property of each event is the value.")] = ()
    currency: Annotated[Path, PATH, Meta(description="The property with the currency; makes the value money.")] = ()
    nulls: Annotated[
        Literal["ignore", "respect"],
        choice(("ignore", "respect")),
        Meta(
            title="Events without the value",
            description="Whether an event without the value is passed over, or counts: the value is then `empty`.",
        ),
    ] = "ignore"
    within: Annotated[int | None, _WINDOW, Meta(description="How far back events count; without it all do.")] = (
        msgspec.field(default=None, name="window")
    )
    """Microseconds, or `LIFETIME`; None: where it is part of a ratio, that of the ratio."""
    written_empty: Annotated[
        Scalar | msgspec.UnsetType,
        _EMPTY,
        Meta(title="Value without any event", description="What it is where there is nothing to compute."),
    ] = msgspec.field(default=msgspec.UNSET, name="empty")
    unit: str = ""
    description: str = ""
    version: Annotated[int, Meta(ge=1)] = 1
    stale_after: Annotated[
        int | None, duration(), Meta(description="After how long without an event of its own the value is stale.")
    ] = None
    top: Annotated[str | Feature, _SIDE] = msgspec.field(default="", name="numerator")
    bottom: Annotated[str | Feature, _SIDE] = msgspec.field(default="", name="denominator")
    parts: Annotated[tuple[Term, ...], _PARTS, Meta(description="The features of a score.")] = ()
    place: Given = ""
    written_empty_place: Given = ""

    @cached_property
    def source(self) -> Source | None:
        """Which events feed it; None if it is built on other features."""
        return self.source_of(self.of) if self.events else None

    @cached_property
    def window(self) -> int | None:
        """Microseconds; None is a lifetime."""
        return self.within or None if AGGREGATES[self.aggregate].windowed else None

    @cached_property
    def empty(self) -> Scalar:
        """The value where there is nothing to compute."""
        written = self.written_empty
        return AGGREGATES[self.aggregate].empty if isinstance(written, msgspec.UnsetType) else written

    @cached_property
    def numerator(self) -> str:
        """The name of what a ratio divides; one that is written in place has a name of its own."""
        return self.top if isinstance(self.top, str) else f"{self.name}.numerator"

    @cached_property
    def denominator(self) -> str:
        """The name of what a ratio divides by."""
        return self.bottom if isinstance(self.bottom, str) else f"{self.name}.denominator"

    @cached_property
    def hidden(self) -> bool:
        """Whether it was written inside a ratio and is not shown."""
        return "." in self.name

    @cached_property
    def reads(self) -> ValueKind:
        """The kind of value it takes from events."""
        kind = AGGREGATES[self.aggregate].reads
        if kind == "scalar" and self.nulls == "respect":
            return "nullable"
        return "money" if kind == "number" and self.currency else kind

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The names of the features it is built on."""
        sides = tuple(name for name in (self.numerator, self.denominator) if name)
        return sides + tuple(part.feature for part in self.parts)

    @property
    def content(self) -> dict[str, object]:
        """All that is declared, however it was written."""
        written = ("place", "written_empty_place", "events", "except", "where", "of", "window", "empty")
        return content(
            self,
            written,
            source=self.source,
            window=self.window,
            empty=self.empty,
            numerator=self.numerator,
            denominator=self.denominator,
            hidden=self.hidden,
        )

    def with_sides(self) -> Iterator[Feature]:
        """It, and the features that are written inside it."""
        yield self
        for name, side in ((self.numerator, self.top), (self.denominator, self.bottom)):
            if isinstance(side, Feature):
                within = self.within if side.within is None else side.within
                yield from msgspec.structs.replace(side, name=name, within=within).with_sides()

    def problems(self, written: Collection[str]) -> Problems:
        """What does not go with the aggregate, or is missing for it."""
        yield from super().problems(written)
        aggregate, rules = self.aggregate, AGGREGATES[self.aggregate]
        for key in written:
            if key not in allowed_keys(aggregate):
                fitting = ", ".join(name for name in AGGREGATES if key in allowed_keys(name))
                yield key, f"{aggregate!r} takes no `{key}`; remove it, or use one of {fitting}"
        for key in _NEEDED.get(aggregate, ("events",)):
            if key not in written:
                yield "", f"{aggregate!r} needs `{key}`: {_EXAMPLES_OF[key]}"
        if rules.reads != "none" and any(not (taking.path or self.of) for taking in self.events.values()):
            yield "events", f"{aggregate!r} needs the path of a value; add `of: total`, or `value` under each event"
        elif rules.reads != "number" and any(taking.sign < 0 for taking in self.events.values()):
            yield "events", f"{aggregate!r} takes no `sign`; remove it, or use sum"


_SIDE_FORM = "the name of a feature, or aggregate and events in place"
_EXAMPLES_OF = {
    "events": "add `events: purchase_completed`, a list, or `events: any`",
    "numerator": _SIDE_FORM,
    "denominator": _SIDE_FORM,
    "parts": "feature names, each with {weight: …, half: …}",
}
_FEATURE: Form[Feature] = struct(Feature)


def _schema_of(aggregate: str) -> dict[str, Any]:
    options = _FEATURE.schema["properties"]
    then = {
        "description": AGGREGATES[aggregate].meaning,
        "properties": {key: options[key] for key in allowed_keys(aggregate)},
        "required": list(_NEEDED.get(aggregate, ("events",))),
        "additionalProperties": False,
    }
    return {"if": {"properties": {"aggregate": {"const": aggregate}}, "required": ["aggregate"]}, "then": then}


_SCHEMA = {
    "type": "object",
    "required": ["aggregate"],
    "properties": {"aggregate": _FEATURE.schema["properties"]["aggregate"]},
    "allOf": [_schema_of(aggregate) for aggregate in AGGREGATES],
}
FEATURES = Named(
    "features",
    "feature",
    replace(_FEATURE, schema=_SCHEMA),
    "Features by name; false leaves out one that ships.",
    "spend_30d",
    ships="threadline.capabilities.profile.features",
)

_CURRENCY = parsed(
    lambda code: code if code and read_currency(code) == code else None,
    "the code of a currency in capitals, such as USD",
    pattern=f"^[A-Z]{{1,{CURRENCY_LENGTH_MAX}}}$",
    examples=["USD"],
)
_RATE_MAX_DIGITS = 30


def _rate(written: str) -> str | None:
    # The text as it stands: a float would not be the number that was written.
    try:
        rate = Decimal(written)
    except InvalidOperation:
        return None
    fits = rate.is_finite() and rate > 0 and max(len(written), abs(rate.adjusted()) + 1) <= _RATE_MAX_DIGITS
    return written.replace("_", "") if fits else None


_RATE = parsed(
    _rate,
    'a decimal above 0, such as "1.08": how much of `total_in` one is',
    (str, int, float),
    **DECIMAL,
    examples=["1.08"],
)


class Currencies(msgspec.Struct, frozen=True, kw_only=True):
    """How amounts of several currencies become one: ``rates[EUR] = "1.08"`` says that 1 EUR is 1.08 of ``total_in``."""

    total_in: Annotated[str, _CURRENCY, Meta(description="The currency of totals.")] = ""
    default: Annotated[str, _CURRENCY, Meta(description="The currency of amounts that name none.")] = ""
    rates: Annotated[
        Mapping[str, str],
        by_name(_RATE, _CURRENCY),
        Meta(description="How much of total_in one unit of each currency is."),
    ] = {}

    def problems(self, written: Collection[str]) -> Problems:
        """What rates cannot be without, or of."""
        if "rates" in written and not self.total_in:
            yield "rates", "`rates` need a currency to convert into; add `total_in: USD`"
        if self.total_in in self.rates:
            yield ("rates", self.total_in), f"1 {self.total_in} is 1 {self.total_in}; remove the line"


class Campaigns(msgspec.Struct, frozen=True, kw_only=True):
    """What is a campaign, and when it counts as ignored."""

    ignored_after: Annotated[int, duration()] = 7 * DAY
    own_mail: Annotated[
        bool,
        Meta(
            title="Mails of Threadline count",
            description="Whether mails that Threadline sends are campaigns; transactional ones never are.",
        ),
    ] = False


_NO_CURRENCIES = Currencies()
CURRENCIES = Single("currencies", struct(Currencies), frozenset({"features"}))
CAMPAIGNS = Single("campaigns", struct(Campaigns), frozenset({CAMPAIGN_IGNORED}))
KIND = FEATURES.kind
SECTIONS = (FEATURES.declared, CURRENCIES.declared, TIMEZONE.declared, CAMPAIGNS.declared)


@dataclass(frozen=True)
class FeatureSet:
    """All features in force, each after those it is built on."""

    features: tuple[Feature, ...]
    currencies: Currencies = _NO_CURRENCIES
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
                "features": [feature.content for feature in sorted(self.features, key=lambda feature: feature.name)],
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


def load_definitions(paths: Iterable[str | FilePath] = ()) -> FeatureSet:
    """The shipped features with what these files, or all ``*.yaml`` and ``*.yml`` in these folders, declare.

    Any section that is not of features is an error. Raises `InvalidDefinition` with every problem, one a line.
    """
    return _alone(Definitions.load(paths))


def read_definitions(texts: Iterable[tuple[str, str]] = ()) -> FeatureSet:
    """As `load_definitions`, from pairs of a name for messages and the text."""
    return _alone(Definitions(texts))


def _alone(definitions: Definitions) -> FeatureSet:
    features = read_features(definitions)
    definitions.refuse_unknown()
    return features


def read_features(definitions: Definitions) -> FeatureSet:
    """The shipped features with what these definitions declare. Problems are noted in them, not raised."""
    declared = FEATURES.read(definitions)
    features = {side.name: side for feature in declared.values.values() for side in feature.with_sides()}
    ordered = _ordered(features, declared, definitions)
    if len(ordered) > FEATURES_MAX:
        text = f"{len(ordered)} features are declared, at most {FEATURES_MAX} are allowed; remove some"
        definitions.problems.append(text)
    campaigns = CAMPAIGNS.read(definitions, Campaigns())
    return FeatureSet(
        tuple(ordered),
        CURRENCIES.read(definitions, _NO_CURRENCIES),
        TIMEZONE.read(definitions, "UTC"),
        campaigns.ignored_after,
    )


def _ordered(
    features: Mapping[str, Feature], declared: Declarations[Feature], definitions: Definitions
) -> list[Feature]:
    """The features, each after those it is built on; what is unknown or goes round in circles is a problem."""
    problems = definitions.problems
    ordered: dict[str, Feature] = {}
    # What is declared wrongly is a problem already.
    failed = declared.places.keys() - features.keys() - declared.left_out

    def visit(feature: Feature, path: tuple[str, ...]) -> None:
        if feature.name in ordered or feature.name in failed:
            return
        if feature.name in path:
            failed.add(feature.name)
            circle = " → ".join((*path[path.index(feature.name) :], feature.name))
            problems.append(f"{feature.place}: features are built on each other in a circle: {circle}; break it")
            return
        for name in feature.needs:
            problem = "" if name in failed else _unfit(feature, name, features, declared)
            if problem:
                problems.append(problem)
            if problem or name in failed:
                failed.add(feature.name)
            else:
                visit(features[name], (*path, feature.name))
                if name in failed:  # by a circle
                    failed.add(feature.name)
        if feature.name not in failed:
            ordered[feature.name] = feature

    for name in sorted(features):
        visit(features[name], ())
    definitions.failed |= failed
    return list(ordered.values())


def _unfit(feature: Feature, name: str, features: Mapping[str, Feature], declared: Declarations[Feature]) -> str:
    """Why a feature cannot be built on another, with the place of what is wrong; empty if it can."""
    owner, place = feature.name.split(".")[0], feature.place
    if name in declared.left_out:
        return (
            f"{place}: feature {owner!r} needs {name!r}, which {declared.places[name]} leaves out; "
            f"leave out {owner!r} as well, or declare it anew"
        )
    needed = features.get(name)
    if needed is None:
        known = [other.name for other in features.values() if not other.hidden and other.name != owner]
        return f"{place}: feature {owner!r} is built on {name!r}, which is not declared; {suggestion(name, known)}"
    if AGGREGATES[needed.aggregate].reads == "scalar":
        return (
            f"{place}: feature {owner!r} is built on {name!r}, which need not be a number; build it on a count or a sum"
        )
    if isinstance(needed.empty, str) or abs(needed.empty or 0) >= _EMPTY_MAX:
        return (
            f"{needed.written_empty_place}: feature {owner!r} is built on {name!r}, and computes with its `empty`; "
            f"write a {'' if isinstance(needed.empty, str) else 'smaller '}number or null"
        )
    return ""
