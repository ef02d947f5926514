"""The trace of conditions as the tree in which they were written, so that it reads as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from threadline.capabilities.foundation.conditions.wording import wording

GROUPS = {"all": "all of these", "any": "at least one of these", "not": "not"}


def tree_of(conditions: Any, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The steps under the groups that hold them. Where they do not fit the conditions they are listed as they are.

    A group has ``group``, ``parts`` and ``matched``: None where nothing says so, as some of it was skipped.
    """
    left = iter(steps)
    try:
        tree = _node(conditions, left)
    except StopIteration:
        tree = None
    if tree is None or next(left, None) is not None:
        return {"group": GROUPS["all"], "parts": [*map(_worded, steps)], "matched": _outcome("all", list(steps))}
    return tree if "group" in tree else {"group": GROUPS["all"], "parts": [tree], "matched": tree.get("matched")}


def _node(conditions: Any, left: Iterator[dict[str, Any]]) -> dict[str, Any]:
    if isinstance(conditions, list):
        conditions = {"all": conditions}
    kind = next((name for name in GROUPS if isinstance(conditions, dict) and name in conditions), None)
    if kind is None:
        return _worded(next(left))
    within = conditions[kind]
    parts = [_node(part, left) for part in (within if isinstance(within, list) else [within])]
    return {"group": GROUPS[kind], "parts": parts, "matched": _outcome(kind, parts)}


def _outcome(kind: str, parts: list[dict[str, Any]]) -> bool | None:
    outcomes = [part.get("matched") for part in parts]
    if kind == "not":
        return None if outcomes[:1] == [None] or not outcomes else not outcomes[0]
    decisive = kind == "any"
    if decisive in outcomes:
        return decisive
    return None if None in outcomes else not decisive


def tree_of_conditions(conditions: Any) -> dict[str, Any] | None:
    """Conditions as they are written, as the same tree without outcomes; None: there are none."""
    if not conditions:
        return None
    tree = _written(conditions)
    return tree if "group" in tree else {"group": GROUPS["all"], "parts": [tree]}


def _written(conditions: Any) -> dict[str, Any]:
    if isinstance(conditions, list):
        conditions = {"all": conditions}
    kind = next((name for name in GROUPS if isinstance(conditions, dict) and name in conditions), None)
    if kind is not None:
        within = conditions[kind]
        return {
            "group": GROUPS[kind],
            "parts": [_written(part) for part in (within if isinstance(within, list) else [within])],
        }
    if not isinstance(conditions, dict):
        return {"text": str(conditions)}
    operator = next((name for name in conditions if name not in ("field", "note")), "")
    return _worded({"field": conditions.get("field", ""), "operator": operator, "expected": conditions.get(operator)})


def _worded(step: dict[str, Any]) -> dict[str, Any]:
    """A condition with what it says in words."""
    field = step["field"]
    path = tuple(field.split(".") if isinstance(field, str) else field)
    return {**step, "path": ".".join(path), "wording": wording(path, step["operator"], step["expected"])._asdict()}


def moved(value: Mapping[str, Any]) -> dict[str, str]:
    """A condition that compares with another value, in words."""
    path, operator = tuple(value["field"].split(".")), value["operator"]
    old, new = (wording(path, operator, value[side]) for side in ("old", "new"))
    if not new.value:  # such as whether a field is known: the comparison says it
        return {"name": new.field, "old": old.comparison, "new": new.comparison}
    return {"name": f"{new.field} {new.comparison}", "old": old.value, "new": new.value}


def question(changes: Sequence[Mapping[str, Any]], old: str, new: str) -> str:
    """What a what-if asks, in a line: values that moved, or the versions that stand against each other."""
    if len(changes) != 1:
        return f"{new[:1].upper()}{new[1:]} against {'what is in force' if old == 'in force' else old}"
    (change,) = changes
    values = [f"{value['name']} {value['new']} instead of {value['old']}" for value in map(moved, change["values"])]
    if 1 <= len(values) <= 2:
        return f"{change['rule']}: {' and '.join(values)}"
    return f"Rule {change['rule']}: {change['new']} against {change['old']}"
