"""Phone numbers: what is one, and the one form (E.164, with its extension) under which its owner is known."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from threadline.kernel.address import trimmed
from threadline.kernel.errors import InvalidValue

DIGITS_MIN = 7
"""Shorter ones are extensions, short codes and what is left of a text."""
DIGITS_MAX = 15
"""Recommendation E.164 of the ITU, 6.2."""

EXTENSION = ";ext="
"""What stands before the extension in a form (RFC 3966)."""

_NUMBER = re.compile(
    r"[+\uff0b]?[\d\s().\-\u2010-\u2015\u2212/]*\d[)\s]*(?:(?:;\s*ext=|,?\s*ext\.?|x|#)\s*\d{1,7})?", re.I
)
_INTERNATIONAL = re.compile(r"[+\uff0b]|00")

_LENGTH = "it has too few or too many digits for its country"


@cache
def _library() -> Any:
    import phonenumbers  # 50 ms and 4 MB, and many stores know nobody's number

    return phonenumbers


def is_region(text: str) -> bool:
    """Whether numbers of a country of this name (ISO 3166, such as DE) can be read."""
    return text in _library().SUPPORTED_REGIONS


def parse_phone(text: str, region: str = "") -> str:
    """The number that a text is, as +, its digits and ``;ext=`` where it has an extension; raises `InvalidValue`.

    Without + or 00 at its beginning it is a number of ``region``, and of nowhere if there is none. The text is the
    number alone, with blanks, dots, dashes, slashes and brackets in it.
    """
    given = trimmed(text)
    if not _NUMBER.fullmatch(given):
        raise _invalid(given, "give one number alone, of digits")
    if not region and not _INTERNATIONAL.match(given):
        raise _invalid(
            given, "it has no country code; declare `identifiers: {phone_region: …}` for numbers without one"
        )
    library = _library()
    try:
        number = library.parse(given if region else re.sub(r"^00", "+", given), region or None)
    except library.NumberParseException as error:
        is_unknown = error.error_type == library.NumberParseException.INVALID_COUNTRY_CODE
        raise _invalid(given, "no country has its country code" if is_unknown else _LENGTH) from None
    form: str = library.format_number(number, library.PhoneNumberFormat.E164)
    # Numbers that are too short are shared by everybody who leaves out an area code. One that is longer than the tables
    # know is nobody else's, and the tables may be older than it.
    possible = library.is_possible_number_with_reason(number)
    fits = (library.ValidationResult.IS_POSSIBLE, library.ValidationResult.TOO_LONG)
    if possible not in fits or not DIGITS_MIN <= len(form) - 1 <= DIGITS_MAX:
        raise _invalid(given, _LENGTH)
    return f"{form}{EXTENSION}{number.extension}" if number.extension else form


def _invalid(text: str, why: str) -> InvalidValue:
    return InvalidValue(f"{text[:80]!r} is not a phone number: {why}")
