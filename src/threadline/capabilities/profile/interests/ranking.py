"""Reads a state of `interests` at an instant: counts per day, and what they are worth by then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from threadline.capabilities.foundation.events.forms import instant
from threadline.capabilities.profile.interests.actions import SEPARATOR, Cell, cell_of
from threadline.capabilities.profile.interests.definition import Interests, Mode, Topic
from threadline.capabilities.profile.interests.scoring import decay_weight, millionths, period_weight
from threadline.capabilities.profile.interests.state import BLOCK_DAYS, CUTOFF, TOPICS
from threadline.kernel.time import DAY

SHOWN_MAX = 20
"""Values per scope that a person's view shows; the operation answers with more."""

Days = dict[int, int]
"""Day since 1970 in UTC -> actions that count."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a scope and what it is worth."""

    scope: str
    value: str
    units: int
    """The weight in units of 1 ÷ `scale`: hundredths in mode `periods`, millionths in mode `decay`."""
    scale: int
    by_age: tuple[int, int, int]
    """Actions that count in the current period, in the one before, and in an older one; zeros in mode `decay`."""
    actions: int
    """All actions that count, within the days that are kept."""

    @property
    def weight(self) -> float:
        """The weight as a number: the nearest float, which prints as the exact decimal."""
        return self.units / self.scale


@dataclass(frozen=True, slots=True)
class Ranked:
    """One topic at an instant: its entries, the heaviest first; of equals the smaller scope and value."""

    rules: Topic
    mode: Mode
    period_start: int
    """The first day of the current period."""
    previous_weight: int
    """The weight of the period before it, in hundredths."""
    entries: list[Entry] = field(default_factory=list)
    capped: bool = False
    """Whether there were more scopes in four weeks than are kept apart."""

    @property
    def weight(self) -> float:
        """The sum of the entries' weights."""
        return sum(entry.units for entry in self.entries) / (self.entries[0].scale if self.entries else 1)


def rank(
    interests: Interests,
    state: Mapping[str, Any],
    now: int,
    *,
    topic: str | None = None,
    application: str | None = None,
    mode: Mode | None = None,
    half_life: int | None = None,
) -> dict[str, Ranked]:
    """Every topic that is still worth something at ``now``, the heaviest first; of equals the smaller name.

    ``topic`` and ``application`` leave out all others. ``mode`` and ``half_life`` (microseconds) take the place of what
    is declared; a half-life alone means mode `decay`.
    """
    today = now // DAY
    capped = any(CUTOFF in cells for block, cells in state.items() if block != TOPICS)
    by_topic: dict[str, Ranked] = {}
    for name, cells in _by_topic(interests, state, topic).items():
        rules = interests.topic(name)
        chosen = mode or (rules.mode if half_life is None else "decay")
        first = state[TOPICS].get(name, 0)
        start = today - (today - first) % rules.period_days
        remaining = start + rules.period_days - 1 - today
        ranked = Ranked(rules, chosen, start, period_weight(1, remaining, rules.period_days), capped=capped)
        if chosen == "periods":
            entries = _by_periods(cells, application, rules.period_days, start, remaining)
        else:
            entries = _by_decay(cells, application, today, half_life or rules.half_life)
        ranked.entries.extend(sorted(entries, key=lambda entry: (-entry.units, entry.scope, entry.value)))
        if ranked.entries:
            by_topic[name] = ranked
    return dict(sorted(by_topic.items(), key=lambda item: (-item[1].weight, item[0])))


# --- counts per day -----------------------------------------------------------------------------


def _by_topic(interests: Interests, state: Mapping[str, Any], topic: str | None) -> dict[str, dict[Cell, Days]]:
    by_topic: dict[str, dict[Cell, dict[int, int]]] = {}
    for block, cells in state.items():
        if block == TOPICS:
            continue
        first_day = int(block) * BLOCK_DAYS
        for name, counts in cells.items():
            if name == CUTOFF or (topic is not None and not name.startswith(f"{topic}{SEPARATOR}")):
                continue
            cell = cell_of(name)
            start = first_day * (DAY // interests.topic(cell.topic).slot)
            slots = by_topic.setdefault(cell.topic, {}).setdefault(cell, {})
            for slot, count in zip(counts[::2], counts[1::2], strict=True):
                slots[start + slot] = count
    return {
        name: {cell: credited(interests.topic(name), slots) for cell, slots in cells.items()}
        for name, cells in by_topic.items()
    }


def credited(rules: Topic, slots: Days) -> Days:
    """Actions per day that count, from actions per slot since 1970: at most so many in a window, the earliest days'."""
    if not rules.most and rules.slot == DAY:
        return slots
    days: Days = {}
    used: dict[int, int] = {}
    for slot in sorted(slots):
        count = slots[slot]
        if rules.most:
            window = slot * rules.slot // rules.window
            count = min(count, rules.most - used.get(window, 0))
            used[window] = used.get(window, 0) + count
        if count:
            day = slot * rules.slot // DAY
            days[day] = days.get(day, 0) + count
    return days


# --- what they are worth ------------------------------------------------------------------------


def _by_periods(
    cells: Mapping[Cell, Days], application: str | None, length: int, start: int, remaining: int
) -> Iterable[Entry]:
    """The two newest periods of the topic count, each by how far it lies back."""
    # A person has many values and few days.
    age_of = {day: _age(day, start, length) for day in {day for days in cells.values() for day in days}}
    weights = {age: period_weight(age, remaining, length) for age in sorted(set(age_of.values()))[:2]}
    sums: dict[tuple[str, str], list[int]] = {}
    for cell, days in _of(cells, application):
        counts = sums.setdefault((cell.scope, cell.value), [0, 0, 0, 0, 0])
        for day, count in days.items():
            age = age_of[day]
            counts[4] += count
            if age in weights:
                counts[min(age, 2)] += count
                counts[3] += count * weights[age]
    for (scope, value), (current, previous, older, units, actions) in sums.items():
        if units:
            yield Entry(scope, value, units, 100, (current, previous, older), actions)


def _age(day: int, start: int, length: int) -> int:
    """How many periods before the current one a day lies. What lies ahead of it counts as of now."""
    return max(0, -((day - start) // length))


def _by_decay(cells: Mapping[Cell, Days], application: str | None, today: int, half_life: int) -> Iterable[Entry]:
    sums: dict[tuple[str, str], list[int]] = {}
    for cell, days in _of(cells, application):
        total = sums.setdefault((cell.scope, cell.value), [0, 0])
        for day, count in days.items():
            total[0] += count * decay_weight(max(0, today - day), half_life)
            total[1] += count
    for (scope, value), (weight, actions) in sums.items():
        units = millionths(weight)
        if units:
            yield Entry(scope, value, units, 1_000_000, (0, 0, 0), actions)


def _of(cells: Mapping[Cell, Days], application: str | None) -> Iterable[tuple[Cell, Days]]:
    return ((cell, days) for cell, days in cells.items() if application is None or cell.application == application)


# --- as a person shows it -----------------------------------------------------------------------


def shown_ranking(ranked: Mapping[str, Ranked]) -> dict[str, Any]:
    """The view: topic -> what it is worth, and per scope its values, the heaviest first."""
    return {topic: _shown(ranking) for topic, ranking in ranked.items()}


def _shown(ranked: Ranked) -> dict[str, Any]:
    scopes: dict[str, dict[str, Any]] = {}
    for entry in ranked.entries:
        values = scopes.setdefault(entry.scope, {})
        if len(values) < SHOWN_MAX:
            values[entry.value] = _shown_entry(ranked.mode, entry)
    shown: dict[str, Any] = {"mode": ranked.mode, "weight": ranked.weight, "top": ranked.entries[0].value}
    if ranked.mode == "periods":
        shown["period_starts_at"] = instant(ranked.period_start * DAY)
        shown["period_ends_at"] = instant((ranked.period_start + ranked.rules.period_days) * DAY)
        shown["previous_weight"] = ranked.previous_weight / 100
    shown["scopes"] = scopes
    if ranked.capped:
        shown["capped"] = True
    return shown


_OF_TOPIC = frozenset(
    {"mode", "weight", "top", "period_starts_at", "period_ends_at", "previous_weight", "scopes", "capped"}
)


def lacks(path: tuple[str, ...]) -> str:
    """Why the view has nothing at a path; empty where it may have: topics, scopes and values are free."""
    topic, *rest = path
    if rest and rest[0] not in _OF_TOPIC:
        named = ".".join((topic, "scopes", *rest, *([] if rest[-1] == "weight" else ["weight"])))
        return f"interests has no {'.'.join(path)!r}; did you mean {f'interests.{named}'!r}?"
    return ""


def _shown_entry(mode: Mode, entry: Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {"weight": entry.weight, "actions": entry.actions}
    if mode == "periods":
        shown["current"], shown["previous"], shown["older"] = entry.by_age
    return shown
