"""Canonical JSON after RFC 8785: equal values give equal bytes, whatever wrote them."""

from __future__ import annotations

import hashlib
import math
import re
from json.encoder import encode_basestring
from typing import Any

import msgspec

from threadline.kernel.errors import InvalidValue

_LONG = re.compile(rb"[0-9]{19}")
"""Every whole number beyond 64 bits has so many digits."""
_INEXACT = re.compile(rb"[0-9]{16}")
"""Every whole number that a double cannot hold has so many digits."""


def canonical_json(value: Any) -> bytes:
    """The bytes of a JSON value in the form of RFC 8785 (JCS).

    Takes None, booleans, numbers, text, lists, tuples and dicts with text keys. Members are ordered by the
    UTF-16 code units of their names, numbers are written as ECMAScript writes them.

    RFC 8785 knows no integers beyond what a double holds exactly. We write every `int` in full digits, so that two
    different integers never share a form; see `standard_json` for what others read. Canonical text keeps its bytes
    when it is read and written again.

    Raises `InvalidValue` for NaN, infinities, lone surrogates, keys that are not text, values of other types and
    values nested too deeply for the interpreter.
    """
    parts: list[str] = []
    try:
        _write(value, parts)
        return "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"the text holds a lone surrogate: {error.reason}") from None
    except RecursionError:
        raise InvalidValue("the value is nested too deeply, or holds itself") from None


def standard_json(value: Any) -> bytes:
    """The bytes that any implementation of RFC 8785 writes: an integer that no double holds is text of its digits."""
    data = canonical_json(value)
    return canonical_json(_without_inexact(value)) if _INEXACT.search(data) else data


def _without_inexact(value: Any) -> Any:
    if type(value) is int:
        digits = str(value)
        # What a double holds in these digits may come back from a store as an `int`, and keeps its form.
        return value if len(digits) < 310 and format_number(float(value)) == digits else digits
    if type(value) is dict:
        return {name: _without_inexact(item) for name, item in value.items()}
    return [_without_inexact(item) for item in value] if type(value) in (list, tuple) else value


def read_canonical(data: bytes) -> Any:
    """The value of a canonical form.

    A whole number that does not fit into 64 bits was a double: of integers we keep no longer ones. What else is whole
    comes back as an `int`, which has the same form.
    """
    value = msgspec.json.decode(data)
    return _with_doubles(value) if _LONG.search(data) else value


def _with_doubles(value: Any) -> Any:
    if type(value) is int:
        return value if -(2**63) <= value < 2**64 else float(value)
    if type(value) is dict:
        return {name: _with_doubles(item) for name, item in value.items()}
    return [_with_doubles(item) for item in value] if type(value) is list else value


def digest64(value: Any) -> int:
    """A signed 64-bit BLAKE2b hash of the canonical form: equal for equal values, on every machine."""
    return int.from_bytes(hashlib.blake2b(canonical_json(value), digest_size=8).digest(), "big", signed=True)


def _write(value: Any, parts: list[str]) -> None:
    kind = type(value)
    if kind is str:
        parts.append(encode_basestring(value))
    elif value is None or kind is bool:
        parts.append("null" if value is None else "true" if value else "false")
    elif kind is int:
        parts.append(_integer(value))
    elif kind is float:
        parts.append(format_number(value))
    elif kind is dict:
        _write_object(value, parts)
    elif kind is list or kind is tuple:
        _write_array(value, parts)
    else:
        raise InvalidValue(f"a value of type {kind.__name__} has no form in JSON")


def _integer(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        # The interpreter refuses to write integers of thousands of digits, because that takes quadratic time.
        raise InvalidValue("the integer has too many digits to be written") from None


def _write_array(value: list[Any] | tuple[Any, ...], parts: list[str]) -> None:
    parts.append("[")
    separator = ""
    for item in value:
        parts.append(separator)
        _write(item, parts)
        separator = ","
    parts.append("]")


def _write_object(value: dict[Any, Any], parts: list[str]) -> None:
    parts.append("{")
    separator = ""
    for name in _ordered(value):
        parts.append(separator + encode_basestring(name) + ":")
        _write(value[name], parts)
        separator = ","
    parts.append("}")


def _ordered(value: dict[Any, Any]) -> list[str]:
    try:
        ascii_only = "".join(value).isascii()
    except TypeError:
        raise InvalidValue("the keys of an object must be text") from None
    # For ASCII the order of code points is that of UTF-16 code units, and several times cheaper to sort by.
    return sorted(value) if ascii_only else sorted(value, key=_code_units)


def _code_units(name: str) -> bytes:
    # Big endian, so that comparing bytes compares code units. A lone surrogate passes here and fails in the end.
    return name.encode("utf-16-be", "surrogatepass")


def format_number(value: float) -> str:
    """A double as ECMAScript writes it (ECMA-262, Number::toString): the shortest digits that read back as the same.

    Raises `InvalidValue` for NaN and the infinities.
    """
    if not math.isfinite(value):
        raise InvalidValue(f"{value} is not a number that JSON can hold")
    if value == 0:
        return "0"
    if value < 0:
        return "-" + format_number(-value)
    # repr gives the shortest digits too, only laid out in another way: take them as 0.DIGITS × 10^point.
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    size = len(digits)
    if size <= point <= 21:
        return digits + "0" * (point - size)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    tail = f".{digits[1:]}" if size > 1 else ""
    return f"{digits[0]}{tail}e{point - 1:+d}"
