"""What differs between two sides, line by line, as a pull request shows it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from threadline.capabilities.rules import Book
from threadline.capabilities.whatif.candidate import Candidate

LINES_MAX = 2_000
CONTEXT_LINES = 3


def differences(old: Candidate, new: Candidate) -> list[str]:
    """The lines of rules and sets that are not the same on both sides; those taken out begin with ``-``, new ones with
    ``+``. Bounded: the last line says so where there are more."""
    lines = [*_of_rules(old.book, new.book), *_of_sets(old.book, new.book)]
    if len(lines) > LINES_MAX:
        return [*lines[:LINES_MAX], f"… and {len(lines) - LINES_MAX:,} more lines"]
    return lines


def _of_rules(old: Book, new: Book) -> Iterator[str]:
    for id in sorted({*old.rules, *new.rules}):
        was, becomes = old.rules.get(id), new.rules.get(id)
        names = [f"rule {id} version {rule.version}" if rule is not None else "nothing" for rule in (was, becomes)]
        yield from _unified(None if was is None else was.content, None if becomes is None else becomes.content, *names)


def _of_sets(old: Book, new: Book) -> Iterator[str]:
    for name in sorted({*old.sets, *new.sets}):
        was, becomes = old.sets.get(name), new.sets.get(name)
        names = [f"rule set {name}" if each is not None else "nothing" for each in (was, becomes)]
        yield from _unified(None if was is None else was.content, None if becomes is None else becomes.content, *names)


def _unified(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, before: str, after: str) -> Iterator[str]:
    if old == new:
        return
    yield from difflib.unified_diff(_lines(old), _lines(new), before, after, n=CONTEXT_LINES, lineterm="")


def _lines(content: Mapping[str, Any] | None) -> list[str]:
    if content is None:
        return []
    shown = {name: value for name, value in content.items() if value not in ("", [], None)}
    text: str = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=120)
    return text.splitlines()
