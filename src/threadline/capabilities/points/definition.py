"""What can be declared about points: versioned tables, multipliers, limits, expiry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal

from threadline.capabilities.conditions import Conditions, Test
from threadline.kernel.time import DAY, EARLIEST

EVENTS_PER_HOUR = 100
BACK = 7 * DAY
SPIKE_TIMES = 10
SPIKE_DAYS_MIN = 5
"""Days with points that an average needs before a day can be told to be out of all proportion to it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What an event of some types earns."""

    name: str
    """Its event type; ``also`` are further types that share its caps."""
    points: int
    also: tuple[str, ...] = ()
    per_day: int | None = None
    """How often it earns in one day of the calendar."""
    cooldown: int | None = None
    """How far apart, microseconds, two events that earn by it must be."""

    @property
    def types(self) -> tuple[str, ...]:
        """Every event type that earns by this rule."""
        return (self.name, *self.also)


@dataclass(frozen=True)
class Table:
    """What earns from an instant on, until the next table begins."""

    version: str
    rules: Mapping[str, Rule]
    """By name."""
    starts_at: int = EARLIEST
    by_type: Mapping[str, Rule] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {type: rule for rule in self.rules.values() for type in rule.types}
        object.__setattr__(self, "by_type", found)


@dataclass(frozen=True, slots=True)
class Multiplier:
    """More points while a number of the person is high enough."""

    path: tuple[str, ...]
    """The name of a projection and where the number stands in its view, e.g. streaks, daily, current."""
    least: Decimal
    times: Decimal
    place: str = ""
    """File and line of the path, for messages."""
    conditions: Conditions = field(init=False, repr=False, compare=False)
    """When it applies."""

    def __post_init__(self) -> None:
        tree = Test(self.path, "greater_than_or_equal", self.least)
        object.__setattr__(self, "conditions", Conditions(tree))


@dataclass(frozen=True, slots=True)
class Points:
    """Everything that is declared."""

    tables: tuple[Table, ...]
    """In the order in which they begin."""
    multipliers: tuple[Multiplier, ...] = ()
    events_per_hour: int = EVENTS_PER_HOUR
    """How many events may earn in one hour of the clock."""
    back: int = BACK
    """How old an event may be, microseconds, when it becomes known, and still earn."""
    spike_times: int = SPIKE_TIMES
    expires_after: int | None = None
    """How long after the end of their month points that were not spent are gone; None: never."""
    timezone: str = "UTC"

    @property
    def types(self) -> frozenset[str]:
        """Every event type that earns by any table."""
        return frozenset(type for table in self.tables for type in table.by_type)

    def table(self, at: int) -> Table:
        """The table in force at an instant."""
        return next((table for table in reversed(self.tables) if table.starts_at <= at), self.tables[0])


def multiplied(points: int, times: Decimal) -> int:
    """Points times a factor, rounded down to whole points."""
    return int((points * times).to_integral_value(ROUND_FLOOR))
