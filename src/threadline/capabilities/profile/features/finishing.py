"""How the value of a feature is made of a tally: means, totals over currencies, favourites."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from threadline.capabilities.profile.features.cells import CURRENCIES_MAX, Tally
from threadline.capabilities.profile.features.definition import Currencies, Feature
from threadline.capabilities.profile.features.plan import Slot
from threadline.kernel.fixed import SCALE, from_fixed
from threadline.kernel.limits import DISTINCT_VALUES_MAX


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
            return Finished(None, {"currency": None, "amounts": _shown(amounts, value_of), "reason": reason, **CAPPED})
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
    shown = _shown(amounts, value_of)
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


def _shown(amounts: dict[str, list[Any]], value_of: Callable[[list[Any]], Fraction]) -> dict[str, float]:
    return {code or "unknown": _amount(value_of(cell)) for code, cell in sorted(amounts.items())}


def _amount(units: Fraction) -> float:
    """The nearest float to an exact amount of units; a converted one may have more digits than a millionth."""
    return units.numerator / (units.denominator * SCALE)
