"""The normal form of an identifier's value, so that two spellings of one address or number name one person."""

from __future__ import annotations

from typing import Literal

from threadline.kernel.address import checked_address, trimmed
from threadline.kernel.phone import parse_phone

Form = Literal["strip", "email", "phone", "whatsapp"]
"""``strip`` (without blanks around), ``email`` (an address of mail), ``phone`` (a number), ``whatsapp`` (one that may
lack its +)."""


def normalised(value: str, form: Form, region: str = "") -> str:
    """A value in this form; raises `InvalidValue` for what is no address or no number. Numbers without a country are
    those of ``region``."""
    if form == "strip":
        return value.strip()
    if form == "email":
        return checked_address(value, "")
    if form == "whatsapp" and (digits := trimmed(value)).isdigit():
        value = f"+{digits}"  # WhatsApp names everybody by a number with its country code and without the +
    return parse_phone(value, region)
