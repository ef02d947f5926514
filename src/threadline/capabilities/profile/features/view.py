"""What a state means at an instant: the value of every feature, its standing and when time alone will change it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from threadline.capabilities.profile.features.cells import CURRENCIES_MAX, Entry, Gathered, Series, Tally
from threadline.capabilities.profile.features.definition import Currencies, Feature, FeatureSet, Term
from threadline.capabilities.profile.features.plan import Plan, Slot
from threadline.capabilities.profile.features.unread import COUNTED, unread_name, unread_reason
from threadline.kernel.event import Recorded
from threadline.kernel.fixed import SCALE, from_fixed
from threadline.kernel.limits import DISTINCT_VALUES_MAX
from threadline.kernel.projection import Edge
from threadline.kernel.time import DAY

State = dict[str, Any]

PRESENT, STALE, NOT_FOUND = "PRESENT", "STALE", "NOT_FOUND"

SCORE_DIGITS = 4
"""Decimals of a score."""


class Reading(NamedTuple):
    """One feature at one instant."""

    value: Any
    computed_at: int | None = None
    """When the newest event of its own was recorded; None: it has none."""
    newest: int | None = None
    """When the newest event of its own occurred."""
    changes_at: int | None = None
    extra: dict[str, Any] | None = None


@dataclass(slots=True)
class _Moment:
    """One reading of one state: what features have in common is gathered once."""

    state: State
    now: int
    events: list[Recorded]
    """Single events of the cut edges."""
    series_of: Mapping[tuple[str, int], tuple[int, Series]]
    """(slot, window) -> the series that the window is of, and where its buckets are in the slot's state."""
    by_type: dict[str, list[Recorded]] = field(default_factory=dict)
    gathered: dict[tuple[str, int], Gathered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for event in self.events:
            self.by_type.setdefault(event.event.type, []).append(event)

    def window(self, slot: Slot, slot_state: list[Any], size: int) -> Gathered:
        """What the window of a slot holds."""
        key = (slot.name, size)
        known = self.gathered.get(key)
        if known is None:
            at, series = self.series_of[key]
            known = self.gathered[key] = series.gather(slot_state[at], size, self.now, self._entries(slot))
        return known

    def _entries(self, slot: Slot) -> Callable[[int, int], Iterable[Entry]]:
        def between(start: int, stop: int) -> Iterable[Entry]:
            entries = []
            for type in slot.types or self.by_type:
                if (feed := slot.feed(type)) is not None:
                    events = (event for event in self.by_type.get(type, ()) if start <= event.event.occurred_at < stop)
                    entries += [slot.entry_through(feed, event) for event in events]
            return [entry for entry in entries if entry is not None]

        return between


class Reader:
    """Reads states of one plan."""

    def __init__(self, features: FeatureSet, plan: Plan, only: Collection[str] | None = None) -> None:
        self._plan = plan
        self._visible = [features.by_name[name] for name in features.names if only is None or name in only]
        needed = None if only is None else _with_needs(features, self._visible)
        self._features = [feature for feature in features.features if needed is None or feature.name in needed]
        slots = [slot for slot in plan.slots if needed is None or _feeds(plan, slot, needed)]
        self._finishes = {
            feature.name: finisher(feature, slot, features.currencies)
            for feature in features.features
            if (slot := plan.slot_of.get(feature.name)) is not None
        }
        self._windowed = [(slot, at, series) for slot in slots for at, series in enumerate(slot.series, slot.series_at)]
        self._series_of = {
            (slot.name, window): (at, series) for slot, at, series in self._windowed for window in series.windows
        }
        self._unread = {slot.name: unread_name(slot.name) for slot in plan.slots}
        self._instants = [(slot.name, instant) for slot in plan.slots for instant in _instants(features, plan, slot)]
        self._instants += [
            (self._unread[slot.name], partial(_any_ends, window))
            for slot in plan.slots
            if slot.kind in COUNTED
            for series in slot.series
            for window in series.windows
        ]
        self._staleness = [
            (_slots_under(features, plan, feature), feature.stale_after)
            for feature in features.features
            if feature.stale_after is not None
        ]

    def view(self, state: State, now: int, events: list[Recorded]) -> dict[str, dict[str, Any]]:
        """Every shown feature by name; ``events`` are those that `edges` names."""
        readings = self._read(_Moment(state, now, events, self._series_of))
        return {feature.name: _shown(feature, readings[feature.name], now) for feature in self._visible}

    def edges(self, state: State, now: int) -> list[Edge]:
        """The events that a view needs one by one, in ranges that are sorted and apart."""
        edges: list[Edge] = []
        for slot, at, series in self._windowed:
            slot_state = state.get(slot.name)
            if slot_state is not None:
                cuts = (series.cut(slot_state[at], window, now) for window in series.windows)
                edges += [Edge(*cut, slot.types) for cut in cuts if cut is not None]
        return _joined(edges)

    def due(self, state: State, now: int) -> int | None:
        """The next instant after ``now`` at which a view may differ by time alone.

        Inside a tallied bucket that a window cuts, events are not at hand: there it is the next step at which to look.
        """
        soonest = None
        for name, instant in self._instants:
            slot_state = state.get(name)
            if slot_state is not None:
                # An event that lies ahead of `now` comes into force right after its time.
                at = slot_state[1] + 1 if slot_state[1] >= now else instant(slot_state, now)
                if at is not None and (soonest is None or at < soonest):
                    soonest = at
        for names, stale_after in self._staleness:
            newest = max((state[name][1] for name in names if name in state), default=None)
            if newest is not None and now - newest <= stale_after:
                soonest = _soonest(soonest, newest + stale_after + 1)
        return soonest

    def _read(self, moment: _Moment) -> dict[str, Reading]:
        readings: dict[str, Reading] = {}
        for feature in self._features:
            slot = self._plan.slot_of.get(feature.name)
            if slot is not None:
                reading = _of_events(feature, slot, self._finishes[feature.name], moment)
                unread = moment.state.get(self._unread[slot.name])
                if unread is not None:
                    reading = _without_unread(feature, reading, unread, moment.now)
            elif feature.aggregate == "ratio":
                reading = _ratio(feature, readings[feature.numerator], readings[feature.denominator])
            else:
                reading = _score(feature, [(part, readings[part.feature]) for part in feature.parts])
            readings[feature.name] = _ageing(feature, reading, moment.now)
        return readings


def _with_needs(features: FeatureSet, visible: Iterable[Feature]) -> set[str]:
    names: set[str] = set()
    waiting = list(visible)
    while waiting:
        feature = waiting.pop()
        names.add(feature.name)
        waiting += [features.by_name[name] for name in feature.needs if name not in names]
    return names


def _feeds(plan: Plan, slot: Slot, names: Collection[str]) -> bool:
    return any(other_slot is slot and name in names for name, other_slot in plan.slot_of.items())


Instant = Callable[[list[Any], int], int | None]


def _instants(features: FeatureSet, plan: Plan, slot: Slot) -> Iterable[Instant]:
    """For one slot, the ways in which time alone changes what is read from it."""
    fed = [feature for feature in features.features if plan.slot_of.get(feature.name) is slot]
    if any(feature.aggregate == "days_since" for feature in fed):
        yield lambda slot_state, now: slot_state[1] + ((now - slot_state[1]) // DAY + 1) * DAY
    for window in sorted({feature.window for feature in fed if feature.aggregate == "any" and feature.window}):
        yield partial(_any_ends, window)
    for at, series in enumerate(slot.series, slot.series_at):
        for window in series.windows:
            yield partial(_window_leaves, at, series, window)


def _any_ends(window: int, slot_state: list[Any], now: int) -> int | None:
    ends = int(slot_state[1]) + window + 1
    return ends if ends > now else None


def _window_leaves(at: int, series: Series, window: int, slot_state: list[Any], now: int) -> int | None:
    leaving = series.leaving(slot_state[at], window, now)
    return None if leaving is None else leaving + window + 1


def _slots_under(features: FeatureSet, plan: Plan, feature: Feature) -> tuple[str, ...]:
    slot = plan.slot_of.get(feature.name)
    if slot is not None:
        return (slot.name,)
    return tuple(name for needed in feature.needs for name in _slots_under(features, plan, features.by_name[needed]))


def _joined(edges: list[Edge]) -> list[Edge]:
    joined: list[Edge] = []
    for edge in sorted(edges, key=lambda item: item.start):
        last = joined[-1] if joined else None
        if last is not None and edge.start <= last.stop:
            # What is handed over besides feeds no slot that asks for it.
            types = last.types | edge.types if last.types and edge.types else frozenset()
            joined[-1] = Edge(last.start, max(edge.stop, last.stop), types)
        else:
            joined.append(edge)
    return joined


def _shown(feature: Feature, reading: Reading, now: int) -> dict[str, Any]:
    status = PRESENT
    if reading.newest is None:
        status = NOT_FOUND
    elif feature.stale_after is not None and now - reading.newest > feature.stale_after:
        status = STALE
    shown = {
        "value": reading.value,
        "status": status,
        "computed_at": reading.computed_at,
        "changes_at": reading.changes_at,
        "version": feature.version,
    }
    if feature.unit:
        shown["unit"] = feature.unit
    if reading.extra:
        shown.update(reading.extra)
    return shown


def _ageing(feature: Feature, reading: Reading, now: int) -> Reading:
    """Growing stale is a change by time, too."""
    if feature.stale_after is None or reading.newest is None or now - reading.newest > feature.stale_after:
        return reading
    return reading._replace(changes_at=_soonest(reading.changes_at, reading.newest + feature.stale_after + 1))


def _soonest(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)


def _newer(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return max(first, second)


def _of_events(feature: Feature, slot: Slot, finish: Finish, moment: _Moment) -> Reading:
    slot_state = moment.state.get(slot.name)
    if slot_state is None:
        return Reading(feature.empty)
    computed_at, newest = slot_state[0], slot_state[1]
    if feature.aggregate == "days_since":
        days = (moment.now - newest) // DAY
        return Reading(days, computed_at, newest, newest + (days + 1) * DAY)
    window = feature.window
    if feature.aggregate == "any":
        if window is None:
            return Reading(True, computed_at, newest)
        inside = newest >= moment.now - window
        return Reading(inside or feature.empty, computed_at, newest, newest + window + 1 if inside else None)
    if window is None:
        value, extra = finish(slot_state[2])
        return Reading(value, computed_at, newest, None, extra)
    gathered = moment.window(slot, slot_state, window)
    leaves = None if gathered.leaves is None else gathered.leaves + window + 1
    if gathered.tally is None:
        return Reading(feature.empty, computed_at, newest, leaves)
    value, extra = finish(gathered.tally)
    if gathered.capped and feature.aggregate == "distinct":
        extra = CAPPED
    return Reading(value, computed_at, newest, leaves, extra)


def _without_unread(feature: Feature, reading: Reading, unread: list[int], now: int) -> Reading:
    """A reading of a slot that could not read all its values, which says so as long as one may lie in the window."""
    ends = None if feature.window is None else unread[1] + feature.window + 1
    if ends is not None and ends <= now:
        return reading
    extra = reading.extra or {}
    reasons = [extra["reason"]] if "reason" in extra else []
    reasons.append(unread_reason(unread, windowed=ends is not None))
    changes_at = _soonest(reading.changes_at, ends)
    return reading._replace(changes_at=changes_at, extra={**extra, "reason": "; ".join(reasons)})


def _ratio(feature: Feature, above: Reading, below: Reading) -> Reading:
    value = feature.empty
    if above.value is not None and below.value:
        value = above.value / below.value
    return _composed(value, {feature.numerator: above, feature.denominator: below})


def _score(feature: Feature, parts: list[tuple[Term, Reading]]) -> Reading:
    readings = [reading for _, reading in parts]
    if all(reading.newest is None for reading in readings):
        return _composed(feature.empty, {part.feature: reading for part, reading in parts})
    points = sum(part.weight * _saturated(part, reading.value) for part, reading in parts)
    whole = sum(part.weight for part, _ in parts)
    return _composed(round(100 * points / whole, SCORE_DIGITS), {part.feature: reading for part, reading in parts})


def _saturated(part: Term, value: Any) -> float:
    """How much of a part's weight it earns, 0 to 1: half of it where the feature equals ``half``."""
    if value is None:
        return 0.0
    amount = max(float(value), 0.0)
    return (part.half if part.falling else amount) / (amount + part.half)


def _composed(value: Any, readings: Mapping[str, Reading]) -> Reading:
    """A value made of others, by name: as new as the newest of them, and no more exact than each."""
    computed_at = newest = changes_at = None
    extra: dict[str, Any] = {}
    reasons = []
    for name, reading in readings.items():
        if reading.extra is not None:
            if "capped" in reading.extra:
                extra |= CAPPED
            if "reason" in reading.extra:
                reasons.append(f"{name}: {reading.extra['reason']}")
        computed_at = _newer(computed_at, reading.computed_at)
        newest = _newer(newest, reading.newest)
        changes_at = _soonest(changes_at, reading.changes_at)
    if reasons:
        extra["reason"] = "; ".join(reasons)
    return Reading(value, computed_at, newest, changes_at, extra or None)


# --- the value of a tally: means, totals over currencies, favourites -------------------------------


class Finished(NamedTuple):
    """A value made of a tally, with what has to stand beside it."""

    value: Any
    extra: dict[str, Any] | None = None


Finish = Callable[[Tally], Finished]

CAPPED = {"capped": True}
"""Stands beside a value for which more was told than is kept."""


def finisher(feature: Feature, slot: Slot, currencies: Currencies) -> Finish:
    """How the value of a feature is made of the tally of its slot."""
    index_of = {cell: at for at, cell in enumerate(slot.cells)}
    if slot.kind == "money":
        return _money_finisher(feature.aggregate, index_of, currencies)
    match feature.aggregate:
        case "count":
            return lambda tally: Finished(tally[index_of["n"]])
        case "sum":
            return lambda tally: Finished(from_fixed(int(tally[index_of["sum"]])))
        case "average":
            return lambda tally: Finished(int(tally[index_of["sum"]]) / (tally[index_of["n"]] * SCALE))
        case "min" | "max":
            return lambda tally: Finished(from_fixed(tally[index_of[feature.aggregate]]))
        case "first" | "last":
            return lambda tally: _scalar(feature, tally[index_of[feature.aggregate]][2])
        case "distinct":
            return lambda tally: _distinct(tally[index_of["keys"]])
        case "preferred_hour":
            return lambda tally: Finished(_most(tally[index_of["hours"]]))
        case "preferred_day":
            return lambda tally: Finished(_most(tally[index_of["days"]]) + 1)
        case _:
            # `any` and `days_since` are read from the head of the slot.
            return lambda tally: Finished(None)


def _scalar(feature: Feature, value: Any) -> Finished:
    if value is not None:
        return Finished(value)
    latest = "latest" if feature.aggregate == "last" else "earliest"
    return Finished(feature.empty, {"reason": f"the {latest} event has no such value"})


def _distinct(keys: list[int]) -> Finished:
    return Finished(len(keys), CAPPED if len(keys) > DISTINCT_VALUES_MAX else None)


def _most(counts: list[int]) -> int:
    return counts.index(max(counts))


def _money_finisher(aggregate: str, index_of: dict[str, int], currencies: Currencies) -> Finish:
    cell = index_of["money" if aggregate in ("sum", "average") else "range"]
    value_of = _ONE_CURRENCY[aggregate]
    rates = {code: Fraction(rate) for code, rate in currencies.rates.items()}
    if currencies.total_in:
        rates[currencies.total_in] = Fraction(1)

    def finish(tally: Tally) -> Finished:
        amounts: dict[str, list[Any]] = tally[cell]
        if len(amounts) > CURRENCIES_MAX:
            reason = f"more than {CURRENCIES_MAX} currencies"
            return Finished(
                None, {"currency": None, "amounts": _shown_amounts(amounts, value_of), "reason": reason, **CAPPED}
            )
        named = {code or currencies.default: cell for code, cell in amounts.items()}
        if len(named) < len(amounts):
            named = _renamed(amounts, currencies.default, aggregate)
        return _total(named, value_of, rates, currencies.total_in, aggregate)

    return finish


def _units(cell: list[Any]) -> Fraction:
    return Fraction(int(cell[1]))


_ONE_CURRENCY: dict[str, Callable[[list[Any]], Fraction]] = {
    "sum": _units,
    "average": lambda cell: Fraction(int(cell[1]), cell[0]),
    "min": lambda cell: Fraction(cell[0]),
    "max": lambda cell: Fraction(cell[1]),
}
"""What a cell says of the amounts in one currency, by aggregate, in millionths."""


def _renamed(amounts: dict[str, list[Any]], default: str, aggregate: str) -> dict[str, list[Any]]:
    """Amounts that name no currency join those of the default one."""
    a, b = amounts[""], amounts[default]
    both = [min(a[0], b[0]), max(a[1], b[1])] if aggregate in ("min", "max") else [a[0] + b[0], int(a[1]) + int(b[1])]
    return {code: both if code == default else cell for code, cell in amounts.items() if code}


def _total(
    amounts: dict[str, list[Any]],
    value_of: Callable[[list[Any]], Fraction],
    rates: dict[str, Fraction],
    total_in: str,
    aggregate: str,
) -> Finished:
    single = next(iter(amounts)) if len(amounts) == 1 else None
    if single is not None and (not total_in or single == total_in):
        return Finished(_amount(value_of(amounts[single])), {"currency": single or None})
    shown = _shown_amounts(amounts, value_of)
    if not all(code in rates for code in amounts):
        return Finished(None, {"currency": None, "amounts": shown, "reason": _no_total(amounts, rates, total_in)})
    match aggregate:
        case "sum":
            total = sum((value_of(cell) * rates[code] for code, cell in amounts.items()), Fraction(0))
        case "average":
            total = sum((_units(cell) * rates[code] for code, cell in amounts.items()), Fraction(0))
            total /= sum(cell[0] for cell in amounts.values())
        case "min":
            total = min(value_of(cell) * rates[code] for code, cell in amounts.items())
        case _:
            total = max(value_of(cell) * rates[code] for code, cell in amounts.items())
    return Finished(_amount(total), {"currency": total_in, "amounts": shown})


def _no_total(amounts: Iterable[str], rates: Collection[str], total_in: str) -> str:
    """Why amounts in these currencies have no total, such as "2 currencies: EUR and none; no rates"."""
    codes = sorted(amounts)
    counted = f"{len(codes)} currencies" if len(codes) > 1 else "currency"
    without = "no rates" if not total_in else f"no rate to {total_in} for {_listed(set(codes).difference(rates))}"
    return f"{counted}: {_listed(codes)}; {without}"


def _listed(codes: Iterable[str]) -> str:
    *others, last = [*sorted(code for code in codes if code), *("none" for code in codes if not code)]
    return f"{', '.join(others)} and {last}" if others else last


def _shown_amounts(amounts: dict[str, list[Any]], value_of: Callable[[list[Any]], Fraction]) -> dict[str, float]:
    return {code or "unknown": _amount(value_of(cell)) for code, cell in sorted(amounts.items())}


def _amount(units: Fraction) -> float:
    """The nearest float to an exact amount of units; a converted one may have more digits than a millionth."""
    return units.numerator / (units.denominator * SCALE)
