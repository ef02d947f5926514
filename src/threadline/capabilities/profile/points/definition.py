"""What can be declared about points: versioned tables, multipliers, limits, expiry."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import Conditions, Test
from threadline.capabilities.foundation.definitions import Definitions, Place
from threadline.capabilities.foundation.definitions.declaring import (
    FALSE,
    NAMES,
    NUMBER_FIELD,
    Given,
    NotWritten,
    Problems,
    Single,
    by_name,
    decimal,
    described,
    duration,
    either,
    event_type,
    listed,
    one_or_many,
    parsed,
    struct,
    text,
    whole,
)
from threadline.capabilities.profile.features.definition import TIMEZONE, number_path
from threadline.capabilities.profile.points.events import OWN
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import EVENT_TYPE_LENGTH_MAX, POINTS_RULES_MAX
from threadline.kernel.time import DAY, EARLIEST, YEAR, parse_time

EVENTS_PER_HOUR = 100
BACK, BACK_MAX = 7 * DAY, 8 * DAY
SPIKE_TIMES = 10
SPIKE_DAYS_MIN = 5
"""Days with points that an average needs before a day is compared with it."""
POINTS_MAX = 1_000_000_000

_PATH = re.compile(r"[a-z][a-z0-9_]{0,63}(\.[^.\s]{1,64}){1,4}")
_NUMBER = described(
    parsed(
        lambda path: number_path(path) if _PATH.fullmatch(path) else None,
        "the path of a number like streaks.daily.current",
        pattern=f"^{_PATH.pattern}$",
        examples=["streaks.daily.current"],
    ),
    **{NAMES: NUMBER_FIELD},
)
_TYPE = event_type(EVENT_TYPE_LENGTH_MAX)
_AMOUNT = whole(1, POINTS_MAX)
_VERSION = either(text(most=64), whole(None).then(str))
_INSTANT = parsed(parse_time, "an instant, such as 2026-03-01T00:00:00Z", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What an event of some types earns."""

    name: Given
    """Its event type; ``also`` are further types that share its caps."""
    points: Annotated[int, _AMOUNT]
    also: Annotated[
        tuple[str, ...] | None,
        one_or_many(_TYPE, least=0),
        Meta(description="Further types, one cap for all; where it is absent those of the table before."),
    ] = None
    per_day: Annotated[int | None, Meta(ge=1, description="How often it earns in a day.")] = None
    cooldown: Annotated[
        int | None, duration(1, 2 * DAY, "5m"), Meta(description="How far apart two events that earn must be.")
    ] = None

    @property
    def types(self) -> tuple[str, ...]:
        """Every event type that earns by this rule."""
        return (self.name, *(self.also or ()))


_EARN = by_name(either(FALSE, _AMOUNT, struct(Rule)), _TYPE)


class Table(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What earns from an instant on, until the next table begins."""

    version: Annotated[str, _VERSION, Meta(description="A number or a short text, named by every line that it makes.")]
    starts_at: Annotated[int | None, _INSTANT, Meta(description="The instant from which it is in force.")] = (
        msgspec.field(default=None, name="from")
    )
    earn: Annotated[
        Mapping[str, Literal[False] | int | Rule],
        _EARN,
        Meta(
            title="Points by event type",
            description="Points by event type, over the table before; false leaves one out.",
        ),
    ] = {}
    rules: NotWritten[Mapping[str, Rule]] = {}
    """By name: those of the table before with what this one earns."""

    @cached_property
    def by_type(self) -> Mapping[str, Rule]:
        """The rules by every event type that earns by them."""
        return {type: rule for rule in self.rules.values() for type in rule.types}


class Multiplier(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """More points while a number of the person is high enough."""

    path: Annotated[tuple[str, ...], _NUMBER, Meta(title="Number", description="A number in a view.")] = msgspec.field(
        name="by"
    )
    least: Annotated[Decimal, decimal(Decimal(10) ** 12, "7"), Meta(description="From which value on.")] = (
        msgspec.field(name="from")
    )
    times: Annotated[
        Decimal, decimal(Decimal(1_000), "1.5"), Meta(title="Factor", description="The largest that applies counts.")
    ]
    path_place: Given = ""

    @cached_property
    def conditions(self) -> Conditions:
        """When it applies."""
        return Conditions(Test(self.path, "greater_than_or_equal", self.least))


_MULTIPLIERS = listed(struct(Multiplier), wanted="a list, each with `by`, `from` and `times`")


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is declared."""

    tables: Annotated[tuple[Table, ...], listed(struct(Table), wanted="a list of tables, each with a `version`")] = ()
    """In the order in which they begin."""
    before: NotWritten[tuple[Table, ...]] = ()
    """The tables that these are laid over."""
    multipliers: Annotated[tuple[Multiplier, ...], _MULTIPLIERS] = ()
    events_per_hour: Annotated[int, Meta(ge=1, description="How many events may earn in one hour of the clock.")] = (
        EVENTS_PER_HOUR
    )
    back: Annotated[
        int,
        duration(1, BACK_MAX, "7d"),
        Meta(title="Oldest event that earns", description="How old an event may be when it becomes known, and earn."),
    ] = BACK
    spike_times: Annotated[
        int,
        Meta(ge=1, title="Flagged above, times the mean", description="A day above so many times the mean is flagged."),
    ] = SPIKE_TIMES
    expires_after: Annotated[
        int | None,
        duration(1, 9 * YEAR, "1y"),
        Meta(description="After the end of their month, unless they were spent; without it points never expire."),
    ] = None
    timezone: NotWritten[str] = "UTC"

    @property
    def types(self) -> frozenset[str]:
        """Every event type that earns by any table."""
        return frozenset(type for table in self.tables for type in table.by_type)

    def table(self, at: int) -> Table:
        """The table in force at an instant."""
        return next((table for table in reversed(self.tables) if (table.starts_at or EARLIEST) <= at), self.tables[0])

    def problems(self, written: Collection[str]) -> Problems:
        """What the tables cannot be, one over the other."""
        yield from laid(self)[1]


def laid(points: Points) -> tuple[tuple[Table, ...], list[tuple[Place, str]]]:
    """The tables, each with the rules of the one before it, and what is wrong with that."""
    tables, problems = list(points.before), list[tuple[Place, str]]()
    for number, table in enumerate(points.tables):
        at: Place = ("tables", number)
        before, what = tables[-1], f"table {table.version!r}"
        starts_at = table.starts_at
        if table.version in {earlier.version for earlier in tables}:
            text = f"version {table.version!r} is already taken; give each table its own version"
            problems.append(((*at, "version"), text))
        if starts_at is None:
            starts_at = before.starts_at
        elif starts_at < (before.starts_at or EARLIEST):
            text = f"{what} begins before table {before.version!r}; put them in order"
            problems.append(((*at, "from"), text))
        rules, wrong = _earning(table, before.rules)
        problems += [((*at, "earn", *inside), text) for inside, text in wrong]
        tables.append(msgspec.structs.replace(table, rules=rules, starts_at=starts_at))
    return tuple(tables), problems


def _earning(table: Table, before: Mapping[str, Rule]) -> tuple[dict[str, Rule], list[tuple[Place, str]]]:
    """The rules of a table over those before, and what is wrong with them."""
    rules, problems = dict(before), list[tuple[Place, str]]()
    for name, earned in table.earn.items():
        former = rules.get(name)
        if earned is False:
            if rules.pop(name, None) is None:
                problems.append(((name,), f"{name!r} earns nothing before table {table.version!r}; remove the line"))
            continue
        if not isinstance(earned, Rule):
            # A plain number changes nothing but the points.
            rule = msgspec.structs.replace(former or Rule(name=name, points=1), points=earned)
        elif earned.also is None and former is not None:
            rule = msgspec.structs.replace(earned, also=former.also)
        else:
            rule = earned
        for type in rule.types:
            if type in OWN or type.startswith(SYSTEM_PREFIX):
                problems.append(((name,), f"{type!r} is Threadline's own and cannot earn points"))
            other = next((rule for rule in rules.values() if rule.name != name and type in rule.types), None)
            if other is not None:
                problems.append(((name,), f"{type!r} earns by {other.name!r} already; remove one of the two"))
        rules[name] = rule
    if len(rules) > POINTS_RULES_MAX:
        text = f"table {table.version!r} has {len(rules)} rules; at most {POINTS_RULES_MAX} are allowed, remove some"
        problems.append(((), text))
    return rules, problems


def _over(before: Points | None = None) -> Any:
    return either(FALSE, struct(Points, before, description="What earns points; false for none at all."))


POINTS = Single("points", _over())
POINTS_SECTION = POINTS.declared


def read_points(definitions: Definitions) -> Points | None:
    """The shipped table with what these definitions lay over it; None if they say ``points: false``.

    Problems are noted in the definitions, not raised.
    """
    nothing = Points(before=(Table(version="0"),))
    ours = Definitions.shipped("threadline.capabilities.profile.points")
    shipped = laid(POINTS.read(ours, nothing, _over(nothing)))[0][1:]
    given = Points(before=shipped, timezone=TIMEZONE.read(definitions, "UTC"))
    points: Points | Literal[False] = POINTS.read(definitions, given, _over(given))
    return None if points is False else msgspec.structs.replace(points, tables=laid(points)[0])


def multiplied(points: int, times: Decimal) -> int:
    """Points times a factor, rounded down to whole points."""
    return int((points * times).to_integral_value(ROUND_FLOOR))
