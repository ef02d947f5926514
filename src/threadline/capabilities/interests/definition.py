"""What users declare about interests: how each topic is counted and scored, and which events tell one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from threadline.capabilities.events.events import INTEREST_DETECTED, PRODUCT_VIEWED
from threadline.capabilities.interests.events import ACTION
from threadline.kernel.canonical import digest64
from threadline.kernel.time import DAY

Mode = Literal["periods", "decay"]
Counting = Literal["every", "capped", "unique"]

PERIOD_DAYS_MAX = 100
"""A longer period could not have two before it within the days that are kept."""
HALF_LIFE_MAX = 3_650 * DAY
WINDOW_MIN = DAY // 144
"""Ten minutes: the shortest window in which repeated actions count as one."""
WINDOW_MAX = 28 * DAY
CAP_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Topic:
    """How actions of one topic become scores."""

    mode: Mode = "periods"
    period_days: int = 30
    half_life: int = 30 * DAY
    """Microseconds."""
    counting: Counting = "every"
    most: int = 0
    """How many actions count per scope and window; 0: every one."""
    window: int = DAY
    """Microseconds: whole days, or a part that divides a day. Windows start on multiples since 1970 in UTC."""

    slot: int = field(init=False)
    """The time that is counted as one, microseconds: a day, or a window that is shorter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slot", min(self.window, DAY))


@dataclass(frozen=True, slots=True)
class Source:
    """Where an event's interest stands: a topic, and fields that become scopes."""

    topic: str = ""
    """The topic itself; empty: it stands in ``topic_field``."""
    topic_field: str = ""
    scopes: tuple[tuple[str, str], ...] = ()
    """Pairs of a scope's topic and the property that holds its value, or a list of values."""
    application_field: str = ""
    listed: bool = False
    """True: scopes stand in the event one by one, as actions have them, and not in named fields."""


SHIPPED: Mapping[str, Source] = {
    ACTION: Source(topic_field="topic", application_field="application_id", listed=True),
    INTEREST_DETECTED: Source(topic="interest", scopes=(("topic", "topic"),)),
    PRODUCT_VIEWED: Source(topic="product", scopes=(("category", "category"),)),
}


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
        counting = {"": default} | {name: each for name, each in counting.items() if each != default}
        sources = {name: asdict(source) for name, source in self.sources.items()}
        return f"{digest64([counting, sources]) & (1 << 64) - 1:016x}"
