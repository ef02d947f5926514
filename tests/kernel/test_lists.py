"""Lists as text."""

from __future__ import annotations

import pytest

from threadline.kernel.lists import comma_separated


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", []), (" , ,", []), ("a", ["a"]), (" b ,a,, b", ["b", "a", "b"]), ("a b=c,d", ["a b=c", "d"])],
)
def test_the_parts_between_commas_come_in_order_without_blanks(text: str, parts: list[str]) -> None:
    assert comma_separated(text) == parts
