"""The normal form of an identifier's value, so that two spellings of one address name one person."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

Form = Literal["strip", "email", "phone"]
"""``strip`` (blanks around), ``email`` (and case folded), ``phone`` (digits and a leading +)."""


def normalised(value: str, form: Form) -> str:
    """A value in this form."""
    return _NORMALISE[form](value)


def _email(value: str) -> str:
    # Not `casefold`: it writes straße as strasse, and those are two domains of two owners.
    return value.strip().lower()


def _phone(value: str) -> str:
    value = value.strip()
    digits = re.sub(r"[^0-9]", "", value)
    return ("+" if value.startswith(("+", "00")) else "") + (digits[2:] if value.startswith("00") else digits)


_NORMALISE: Mapping[Form, Callable[[str], str]] = {"strip": str.strip, "email": _email, "phone": _phone}
