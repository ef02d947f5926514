"""Canonical JSON against the published vectors of RFC 8785, and what must hold for any value."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.kernel.canonical import canonical_json, digest64, format_number, read_canonical, standard_json
from threadline.kernel.errors import InvalidValue

VECTORS = Path(__file__).parents[1] / "data" / "jcs" / "testdata"

# RFC 8785, appendix B: the bits of a double and how it is written.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

texts = st.text(st.characters(blacklist_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", sorted(path.stem for path in (VECTORS / "input").iterdir()))
def test_published_vectors(name: str) -> None:
    value = json.loads((VECTORS / "input" / f"{name}.json").read_text("utf-8"))
    expected = (VECTORS / "output" / f"{name}.json").read_bytes()
    assert expected == bytes.fromhex((VECTORS / "outhex" / f"{name}.txt").read_text())
    assert canonical_json(value) == expected


@pytest.mark.parametrize(("bits", "written"), NUMBERS.items())
def test_numbers_of_appendix_b(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert format_number(number) == written
    assert canonical_json([number]) == f"[{written}]".encode()


@given(values)
@example([2**53 + 1, {"a": (-(2**53) - 1, 10**16)}])
@example(10**400)
def test_standard_json_is_what_a_reader_that_knows_only_doubles_writes_again(value: Any) -> None:
    data = standard_json(value)
    assert canonical_json(json.loads(data, parse_int=float)) == data


@given(st.lists(st.integers(-(2**63), 2**64 - 1) | st.floats(-1e22, 1e22)))
def test_standard_json_is_the_same_of_what_a_store_gives_back(numbers: list[float]) -> None:
    assert standard_json(read_canonical(canonical_json(numbers))) == standard_json(numbers)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_reads_back_as_the_same_double(number: float) -> None:
    written = format_number(number)
    assert float(written) == number
    # ECMAScript turns to exponents below 10^-6 and from 10^21 on, and writes no needless zeros.
    assert ("e" in written) == (number != 0 and not 1e-6 <= abs(number) < 1e21)
    assert not written.startswith(".")
    assert not written.endswith(".0")


@given(values)
def test_canonical_text_is_json_that_says_the_same(value: Any) -> None:
    text = canonical_json(value)
    assert _doubles(json.loads(text)) == _doubles(value)
    assert canonical_json(json.loads(text)) == text


def _doubles(value: Any) -> Any:
    """The value as JSON sees it: 5.0 is 5, and a whole double of 10^20 is read back as an integer."""
    if isinstance(value, dict):
        return {name: _doubles(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_doubles(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    return value


@given(st.dictionaries(texts, st.integers()))
def test_members_stand_in_the_order_of_utf16_code_units(value: dict[str, int]) -> None:
    written = list(json.loads(canonical_json(value)))
    assert written == sorted(value, key=lambda name: [*struct.iter_unpack(">H", name.encode("utf-16-be"))])


def test_a_sign_outside_the_basic_plane_comes_before_the_private_use_area() -> None:
    # By code points U+E000 would come first; by UTF-16 code units the surrogate D83D does.
    assert canonical_json({"\ue000": 1, "\U0001f602": 2}) == '{"\U0001f602":2,"\ue000":1}'.encode()


@given(values, st.randoms())
def test_the_order_of_insertion_does_not_matter(value: Any, random: Any) -> None:
    assert digest64(_shuffled(value, random)) == digest64(value)


def _shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        names = list(value)
        random.shuffle(names)
        return {name: _shuffled(value[name], random) for name in names}
    return [_shuffled(item, random) for item in value] if isinstance(value, list) else value


def test_integers_keep_all_their_digits() -> None:
    assert canonical_json([2**53 + 1, 2**60, -(2**63), 2**64]) == (
        b"[9007199254740993,1152921504606846976,-9223372036854775808,18446744073709551616]"
    )
    assert digest64(2**53) != digest64(2**53 + 1)


def test_digest_is_a_known_signed_64_bit_number() -> None:
    # b2sum -l 64 of the two bytes {} — a second implementation's answer.
    assert digest64({}) == int.from_bytes(bytes.fromhex("01e7b720ff566d53"), "big", signed=True)
    assert all(-(2**63) <= digest64(number) < 2**63 for number in range(50))
    assert any(digest64(number) < 0 for number in range(50))


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        [1, {"a": math.nan}],
        "\ud800",
        "a\udc00",
        {"\ud800": 1},
        {1: 2},
        {None: 1},
        {"a": 1, 2: 3},
        b"bytes",
        {1, 2},
        object(),
        10**5000,
        _endless(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue):
        canonical_json(value)


@pytest.mark.parametrize("value", [1e20, -1e19, 9.9e20, 1e21, 2**64 - 1, -(2**63), 0.1, [{"a": [1e20, "1" * 20]}], "x"])
def test_what_is_read_of_a_canonical_form_can_be_kept_and_has_that_form(value: Any) -> None:
    read = read_canonical(canonical_json(value))
    assert (canonical_json(read), read) == (canonical_json(value), value)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(read)) == value
