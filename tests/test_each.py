"""One test for many values looks at all of them, and says with which one it failed."""

from __future__ import annotations

import pytest

from tests.each import each_of


def test_every_value_is_looked_at_and_the_one_that_fails_is_named() -> None:
    seen: list[int] = []

    @each_of([3, 5, 7, 9], lambda value: f"number {value}")
    def test_odd(value: int) -> None:
        """All of them are small."""
        seen.append(value)
        assert value < 7

    assert (test_odd.__name__, test_odd.__doc__) == ("test_odd", "All of them are small.")
    with pytest.raises(AssertionError) as failed:
        test_odd()
    assert (seen, failed.value.__notes__) == ([3, 5, 7], ["with number 7"])


def test_no_values_are_no_test() -> None:
    with pytest.raises(AssertionError, match="cannot fail"):
        each_of([], str)
