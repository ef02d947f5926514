"""Exact fixed point: amounts as integers of one millionth, so that sums do not depend on their order."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal

SCALE = 1_000_000
"""Units in 1."""
FIXED_MAX = 9_200_000_000_000 * SCALE
"""The largest magnitude of one amount, units: it fits a signed 64-bit integer."""

CURRENCY_LENGTH_MAX = 8
DECIMAL_LENGTH_MAX = 64
DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
"""What a text that is a number looks like; a longer one is none."""
# Wide enough for every text that passes, so that only the one rounding to units ever rounds; traps nothing.
_CONTEXT = Context(prec=2 * DECIMAL_LENGTH_MAX, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999, traps=[])


def to_fixed(value: object) -> int | None:
    """Units of one millionth of an int, a float or a decimal text; None for what is no amount.

    A float counts as the shortest decimal that names it, so 29.33 is exactly 29,330,000 units. Digits beyond
    the sixth decimal are rounded half to even. Booleans, NaN, infinities, texts such as ``12 EUR`` and
    magnitudes above `FIXED_MAX` are no amounts.
    """
    if type(value) is float:
        # `units / 1e6 == value` with fewer than 16 digits proves that the shortest decimal has been found:
        # two decimals of 15 digits never share a float. Everything else takes the slow way.
        if -1e9 < value < 1e9:
            units = round(value * 1e6)
            if units / 1e6 == value:
                return units
        return _from_decimal(Decimal(repr(value)))
    if type(value) is int:
        units = value * SCALE
        return units if -FIXED_MAX <= units <= FIXED_MAX else None
    if type(value) is str:
        return _from_decimal(Decimal(value)) if len(value) <= DECIMAL_LENGTH_MAX and DECIMAL.fullmatch(value) else None
    return _from_decimal(value) if isinstance(value, Decimal) else None


def from_fixed(units: int) -> float:
    """The float whose shortest form is the amount: 29,330,000 units are 29.33."""
    return units / SCALE


def read_currency(value: object) -> str:
    """The code of a currency in capitals; empty for what is none."""
    if type(value) is str and len(value) <= CURRENCY_LENGTH_MAX and value.isascii() and value.isalpha():
        return value.upper()
    return ""


def _from_decimal(amount: Decimal) -> int | None:
    if not amount.is_finite() or (amount and amount.adjusted() > 13):
        return None
    if not amount or amount.adjusted() < -7:
        return 0
    units = int(amount.scaleb(6, _CONTEXT).to_integral_value(ROUND_HALF_EVEN, _CONTEXT))
    return units if -FIXED_MAX <= units <= FIXED_MAX else None
