"""One test that looks at every value of a list: a test for each takes longer than a short look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Value = TypeVar("Value")


def each_of(
    values: Iterable[Value], name: Callable[[Value], object]
) -> Callable[[Callable[[Value], None]], Callable[[], None]]:
    """A decorator: the test is called with each value, and a failure names the first value with which it failed."""
    found = list(values)
    assert found, "a list that came out empty is a test that cannot fail"

    def decorate(check: Callable[[Value], None]) -> Callable[[], None]:
        def test() -> None:
            for value in found:
                try:
                    check(value)
                except BaseException as error:
                    error.add_note(f"with {name(value)}")
                    raise

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
