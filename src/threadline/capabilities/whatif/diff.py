"""What differs between two candidates, line by line, as a pull request shows it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import yaml

from threadline.capabilities.rules.definition import Rule, RuleSet
from threadline.capabilities.whatif.candidate import Candidate

Part = TypeVar("Part", Rule, RuleSet)

LINES_MAX = 2_000
CONTEXT_LINES = 3


def differences(old: Candidate, new: Candidate) -> list[str]:
    """The lines of rules and sets that differ between the two; those taken out begin with ``-``, new ones with
    ``+``. Bounded: the last line says so where there are more."""
    rules = _changes(old.active.rules, new.active.rules, lambda rule: f"rule {rule.id} version {rule.version}")
    sets = _changes(old.active.sets, new.active.sets, lambda each: f"rule set {each.name}")
    lines = [*rules, *sets]
    if len(lines) > LINES_MAX:
        return [*lines[:LINES_MAX], f"… and {len(lines) - LINES_MAX:,} more lines"]
    return lines


def _changes(old: Mapping[str, Part], new: Mapping[str, Part], title: Callable[[Part], str]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        was, becomes = old.get(name), new.get(name)
        before, after = (None if part is None else part.content for part in (was, becomes))
        if before != after:
            names = ["nothing" if part is None else title(part) for part in (was, becomes)]
            yield from difflib.unified_diff(
                _lines(before), _lines(after), names[0], names[1], n=CONTEXT_LINES, lineterm=""
            )


def _lines(content: Mapping[str, Any] | None) -> list[str]:
    if content is None:
        return []
    shown = {name: value for name, value in content.items() if value not in ("", [], None)}
    text: str = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=120)
    return text.splitlines()
