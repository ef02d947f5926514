"""What differs between the rules of the two variants: which versions, and the values of conditions that moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.definition import Rule
from threadline.capabilities.decide.whatif.candidate import Candidate
from threadline.kernel.disclosure import not_personal

VALUES_MAX = 20
_NAMING = frozenset({"version", "name", "description"})
"""Members of a rule by which nothing is decided."""


@not_personal
class ValueChange(msgspec.Struct, kw_only=True):
    """A condition that compares with another value."""

    field: str
    operator: str
    old: Any
    new: Any


@not_personal
class RuleChange(msgspec.Struct, kw_only=True):
    """A rule that is another one in the candidate."""

    rule: str
    old: Annotated[str, Meta(description="`version 3`, `draft`, or `nothing` where there is no such rule.")]
    new: str
    values: Annotated[
        list[ValueChange], Meta(description="What moved, if nothing but values of conditions differs; else empty.")
    ] = []


class _Otherwise(Exception):
    """More than values of conditions differs."""


def rule_changes(old: Candidate, new: Candidate) -> list[RuleChange]:
    """The rules that decide otherwise, by id."""
    before, after = old.active.rules, new.active.rules
    pairs = ((id, before.get(id), after.get(id)) for id in sorted({*before, *after}))
    return [
        RuleChange(rule=id, old=_title(was, old.file), new=_title(becomes, new.file), values=_moved(was, becomes))
        for id, was, becomes in pairs
        if _deciding(was) != _deciding(becomes)
    ]


def _title(rule: Rule | None, file: str) -> str:
    if rule is None:
        return "nothing"
    return "draft" if rule.place.startswith(("content", f"{file}:")) else f"version {rule.version}"


def _deciding(rule: Rule | None) -> dict[str, Any] | None:
    return None if rule is None else {name: value for name, value in rule.content.items() if name not in _NAMING}


def _moved(was: Rule | None, becomes: Rule | None) -> list[ValueChange]:
    before, after = _deciding(was), _deciding(becomes)
    if before is None or after is None or {**before, "conditions": None} != {**after, "conditions": None}:
        return []
    try:
        changes = list(_values(before.get("conditions"), after.get("conditions")))
    except _Otherwise:
        return []
    return changes if len(changes) <= VALUES_MAX else []


def _values(before: Any, after: Any) -> Iterator[ValueChange]:
    if isinstance(before, list) and isinstance(after, list):
        for old, new in zip_longest(before, after):
            yield from _values(old, new)
    elif not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if before != after:
            raise _Otherwise
    elif "field" in before or "field" in after:
        yield from _compared(before, after)
    elif before.keys() != after.keys():
        raise _Otherwise
    else:
        for name in before:
            yield from _values(before[name], after[name])


def _compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ValueChange]:
    field = before.get("field")
    if before.keys() != after.keys() or field != after.get("field"):
        raise _Otherwise
    for operator, value in before.items():
        if value != after[operator]:
            named = field if isinstance(field, str) else ".".join(map(str, field or ()))
            yield ValueChange(field=named, operator=operator, old=value, new=after[operator])
