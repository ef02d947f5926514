"""What users declare about interests: how each topic is counted and scored, and which events show one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    FALSE,
    NotWritten,
    Problems,
    Single,
    by_name,
    deferred,
    duration,
    either,
    event_type,
    naming,
    struct,
    text,
)
from threadline.capabilities.foundation.events.events import INTEREST_DETECTED, PRODUCT_VIEWED
from threadline.capabilities.profile.interests.events import ACTION
from threadline.kernel.canonical import digest64
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.names import PROPERTY
from threadline.kernel.reading import ENTRY, Reading
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import DAY

TOPIC_LENGTH_MAX = 50
SCOPE_LENGTH_MAX = 50
APPLICATION_LENGTH_MAX = 50
VALUE_LENGTH_MAX = 100
"""Of a scope's value in any event, characters."""
ACTION_VALUE_LENGTH_MAX = 50
"""Of a scope's value at the addresses for actions, which keep to the form that their clients know."""


Mode = Literal["periods", "decay"]
Counting = Literal["every", "capped", "unique"]

PERIOD_DAYS_MAX = 100
"""A longer period could not have two before it within the days that are kept."""
HALF_LIFE_MAX = 3_650 * DAY
WINDOW_MIN = DAY // 144
"""Ten minutes: the shortest window in which repeated actions count as one."""
WINDOW_MAX = 28 * DAY
CAP_MAX = 1_000_000


def _in_days(size: int) -> int:
    if size % DAY:
        raise InvalidValue("must be whole days, such as 7d")
    return size // DAY


def _dividing(size: int) -> int:
    if size % DAY and DAY % size:
        raise InvalidValue("must be whole days or divide a day evenly, such as 7d, 1d, 6h or 10m")
    return size


_PERIOD = duration(DAY, PERIOD_DAYS_MAX * DAY).then(_in_days, lambda days: f"{days}d")
_WINDOW = duration(WINDOW_MIN, WINDOW_MAX, "1d").then(_dividing)
_PROPERTY = naming(PROPERTY, text())
_TOPIC = text(most=TOPIC_LENGTH_MAX)


class Topic(msgspec.Struct, frozen=True):
    """How actions of one topic become scores."""

    mode: Annotated[Mode, Meta(description="How actions of the past are weighed.")] = "periods"
    period_days: Annotated[int, _PERIOD, Meta(description="The length of a period, whole days.")] = msgspec.field(
        default=30, name="period"
    )
    half_life: Annotated[
        int, duration(1, HALF_LIFE_MAX), Meta(description="After how long an action counts half, with `mode: decay`.")
    ] = 30 * DAY
    counting: Annotated[Counting, Meta(description="Which actions count.")] = "every"
    most: Annotated[
        int, Meta(ge=1, le=CAP_MAX, title="Limit", description="How many count per scope and window, if capped.")
    ] = 0
    """0: every one."""
    window: Annotated[int, _WINDOW, Meta(description="For `capped` and `unique`: whole days, or a part of one.")] = DAY
    """Microseconds. Windows start on multiples since 1970 in UTC."""

    def __post_init__(self) -> None:
        if self.counting != "capped":
            msgspec.structs.force_setattr(self, "most", 0 if self.counting == "every" else 1)

    @property
    def slot(self) -> int:
        """The time that is counted as one, microseconds: a day, or a window that is shorter."""
        return min(self.window, DAY)

    def problems(self, written: Collection[str]) -> Problems:
        """What the fields cannot be together."""
        if "most" in written and self.counting != "capped":
            yield "most", "`most` belongs to `counting: capped`; remove one or write the other"
        if self.counting == "capped" and not self.most:
            yield "counting", "`counting: capped` needs to know how many count in a window; add `most: 3`"


class Source(msgspec.Struct, frozen=True):
    """Where an event's interest stands: a topic, and fields that become scopes."""

    one_of: ClassVar[tuple[str, ...]] = ("topic", "topic_from")

    topic: Annotated[str, _TOPIC, Meta(description="The topic of every such event.")] = ""
    """Empty: it stands in ``topic_field``."""
    topic_field: Annotated[str, _PROPERTY, Meta(description="The property that holds the topic.")] = msgspec.field(
        default="", name="topic_from"
    )
    scopes: Annotated[
        tuple[tuple[str, str], ...],
        by_name(_PROPERTY, text(most=SCOPE_LENGTH_MAX)).then(lambda named: tuple(named.items())),
        Meta(description="Scope -> the property that holds its value, or a list of values."),
    ] = ()
    application_field: Annotated[str, _PROPERTY, Meta(description="The property that holds the application's id.")] = (
        msgspec.field(default="", name="application_from")
    )
    listed: NotWritten[bool] = False
    """True: scopes stand in the event one by one, as actions have them, and not in named fields."""

    @property
    def values_read(self) -> list[Reading]:
        """What is read in an event."""
        fields = [(self.topic_field, TOPIC_LENGTH_MAX), (self.application_field, APPLICATION_LENGTH_MAX)]
        read = [Reading((name,), "label", most) for name, most in fields if name]
        if self.listed:
            read += [Reading(("scopes",), "list"), Reading(("scopes", ENTRY), "mapping")]
            read += [Reading(("scopes", ENTRY, "topic"), "label", SCOPE_LENGTH_MAX)]
            return [*read, Reading(("scopes", ENTRY, "value"), "label", VALUE_LENGTH_MAX)]
        return [*read, *(Reading((field, ENTRY), "label", VALUE_LENGTH_MAX) for _, field in self.scopes)]


SHIPPED: Mapping[str, Source] = {
    ACTION: Source(topic_field="topic", application_field="application_id", listed=True),
    INTEREST_DETECTED: Source(topic="interest", scopes=(("topic", "topic"),)),
    PRODUCT_VIEWED: Source(topic="product", scopes=(("category", "category"),)),
}


_TOPICS = by_name(deferred(Topic), _TOPIC)
_EVENTS = by_name(either(FALSE, struct(Source)), event_type())


class _Declared(Topic, frozen=True):
    """How topics are counted and scored, and which events have an interest."""

    topics: Annotated[
        Mapping[str, Callable[[Topic], Topic | None]],
        _TOPICS,
        Meta(description="Topic -> what differs from the above."),
    ] = {}
    events: Annotated[
        Mapping[str, Source | Literal[False]],
        _EVENTS,
        Meta(description="Event type -> its topic and scopes; false leaves out one that ships."),
    ] = {}

    def problems(self, written: Collection[str]) -> Problems:
        """Beside those of a topic, which events cannot be declared."""
        yield from super().problems(written)
        for name, source in self.events.items():
            if name.startswith(SYSTEM_PREFIX):
                own = f"names that start with {SYSTEM_PREFIX!r} are Threadline's own"
                yield ("events", name), f"event {name!r}: {own}"
            elif source is False and name not in SHIPPED:
                unknown = f"event {name!r} does not ship and cannot be left out"
                yield ("events", name), f"{unknown}; {suggestion(name, SHIPPED)}"


INTERESTS = Single("interests", struct(_Declared))
INTERESTS_SECTION = INTERESTS.declared


@dataclass(frozen=True, slots=True)
class Interests:
    """Everything declared about interests."""

    default: Topic = field(default_factory=Topic)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=lambda: dict(SHIPPED))

    def topic(self, name: str) -> Topic:
        """How this topic is counted and scored."""
        return self.topics.get(name, self.default)

    @property
    def fingerprint(self) -> str:
        """What shapes the fold, hashed: sources and counting. Modes, periods and half-lives are applied at reading."""
        default = [self.default.slot, self.default.most]
        counting = {name: [topic.slot, topic.most] for name, topic in self.topics.items()}
        counting = {"": default} | {name: counts for name, counts in counting.items() if counts != default}
        sources = {name: msgspec.structs.asdict(source) for name, source in self.sources.items()}
        return f"{digest64([counting, sources]) & (1 << 64) - 1:016x}"


def read_interests(definitions: Definitions) -> Interests:
    """What ships with what these definitions declare. Problems are noted in them, not raised."""
    declared = INTERESTS.read(definitions, _Declared())
    default = Topic(*(getattr(declared, name) for name in Topic.__struct_fields__))
    topics = {name: over(default) for name, over in declared.topics.items()}
    sources = {**SHIPPED, **declared.events}
    return Interests(
        default,
        {name: topic for name, topic in topics.items() if topic is not None},
        {name: source for name, source in sources.items() if source is not False},
    )
