"""Work on what users have written, done where it can stop nobody: within bounds of time, memory and nesting.

A template, a stylesheet or a model may ask for more than a machine has, in a few characters, inside a library that no
counter reaches. Such work is a function of plain data. Whoever asks for it goes on whatever becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Exceeded(NamedTuple):
    """The work did not come back, nor did it when it was done once more by itself."""

    why: str
    """What it exceeded, as part of a sentence: ``it took more than 5 seconds of processor time``."""


class Confined(Protocol):
    """Does work within bounds."""

    def run(self, work: Callable[[T], Any], inputs: Sequence[T]) -> Sequence[Any]:
        """The result for each input, in their order; `Exceeded` for one whose work did not come back.

        ``work`` is a function of a module; inputs can be pickled, and results are what MessagePack knows, so that a
        tuple comes back as a list. Raises `Unavailable` where the work cannot be done now, and `RuntimeError` with the
        traceback if it raises: what is to be expected is part of its result.
        """
        ...

    def close(self) -> None:
        """End what is being done, which then is `Unavailable`. The next work is done all the same."""
        ...


class Unconfined:
    """In place of bounds, where whoever writes the inputs is trusted: the work is done at once, in this process."""

    def run(self, work: Callable[[T], Any], inputs: Sequence[T]) -> Sequence[Any]:
        """See `Confined`."""
        return [work(value) for value in inputs]

    def close(self) -> None:
        """There is nothing to end."""
