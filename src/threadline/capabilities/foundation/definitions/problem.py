"""A mistake or a warning in definitions, with its place."""

from __future__ import annotations

import re

import msgspec

_PLACED = re.compile(r"(.+?):(\d+): (.*)", re.DOTALL)


class Problem(msgspec.Struct, frozen=True):
    """A line of a message about definitions."""

    file: str
    """Empty where it stands in no single file."""
    line: int
    message: str
    column: int = 0
    """From 1; 0 where only the line is known."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.file else self.message


def problem_of(text: str, column: int = 0) -> Problem:
    """The problem of a text such as ``threadline.yaml:3: feature 'x' needs `aggregate```."""
    placed = _PLACED.fullmatch(text)
    return Problem("", 0, text) if placed is None else Problem(placed[1], int(placed[2]), placed[3], column)
