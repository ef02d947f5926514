"""A journey that is drawn: what each button of the drawing does to its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from threadline.capabilities.foundation.definitions.nested_splicing import Path, value_at, with_item, without
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.journeys.outline import ADD, path_of, path_text
from threadline.surfaces.console.item_editing import ITEM_ACTIONS, Drawn, moved

AT, MOVING, DO = "_at", "_moving", "_do"
"""Fields: the step or point that is chosen, the step that is being moved, and the button that was pressed."""
_PATH = re.compile(r"steps\.\d{1,4}(\.(then|else|steps|choice\.\d{1,3}\.steps)\.\d{1,4})*(\.choice\.\d{1,3})?")
NEW_STEPS = {
    "send": "send: {template}\n",
    "wait": "wait: 1d\n",
    "event": "wait: {{event: {event}, timeout: 3d}}\n",
    "if": "if: {{field: features.has_purchased, equals: true}}\n",
    "choice": "choice:\n  - when: {{field: features.has_purchased, equals: true}}\n    steps: []\n",
    "tag": "tag: customer\n",
    "untag": "untag: customer\n",
    "trait": "trait: {{stage: customer}}\n",
    "fact": "fact: {{type: preference, key: newsletter, value: true}}\n",
    "points": "points: 50\n",
    "webhook": "webhook: {destination}\n",
    "start": "start: {journey}\n",
    "leave": "leave: {journey}\n",
    "exit": "exit: done\n",
}
"""What may be put in -> its text, before somebody says more."""


def changed(drawn: Drawn, action: str, examples: Mapping[str, str]) -> Drawn:
    """The same after a button was pressed, such as ``new:steps.2:send``; ``examples`` are names to begin with.

    A button of a drawing that is older than the text may lead to what is no more, and then does nothing.
    """
    name, _, rest = action.partition(":")
    if name != "new" and name not in _ACTIONS:
        return drawn
    at, _, kind = rest.partition(":")
    is_point = name in ("new", "put") or at.startswith(ADD)
    if not (is_point_of if is_point else is_step_of)(drawn.text, at.removeprefix(ADD)):
        return drawn._replace(at="", moving="")
    if name == "new":
        return _new(drawn, path_of(at), kind, examples) if kind in NEW_STEPS else drawn
    return _ACTIONS[name](drawn, at)


def is_step_of(text: str, at: str) -> bool:
    """Whether a path leads to a step of a text, or to a branch of a choice."""
    return bool(_PATH.fullmatch(at)) and value_at(value_of(text), path_of(at)) is not None


def is_point_of(text: str, at: str) -> bool:
    """Whether a step may be put into a text under a path."""
    if not _PATH.fullmatch(at):
        return False
    values, (*within, number) = value_of(text), path_of(at)
    steps = value_at(values, tuple(within)) or []
    holds = len(within) == 1 or isinstance(value_at(values, tuple(within[:-1])), dict)
    return holds and isinstance(steps, list) and isinstance(number, int) and number <= len(steps)


def _new(drawn: Drawn, path: Path, kind: str, examples: Mapping[str, str]) -> Drawn:
    text = with_item(drawn.text, path, NEW_STEPS[kind].format_map(examples))
    return Drawn(text, path_text(path))


def _begun_to_move(drawn: Drawn, at: str) -> Drawn:
    return Drawn(drawn.text, at, "" if drawn.moving == at else at)


def _put(drawn: Drawn, point: str) -> Drawn:
    """The step that is being moved, put in at a point; nothing where that is inside of itself."""
    source, target = path_of(drawn.moving), path_of(point)
    if not is_step_of(drawn.text, drawn.moving) or target[: len(source)] == source:
        return drawn._replace(moving="")
    return moved(drawn, source, target)


def _with_branch(drawn: Drawn, at: str) -> Drawn:
    path = path_of(at)
    branches = value_at(value_of(drawn.text), (*path, "choice")) or []
    branch = "when: {field: features.has_purchased, equals: true}\nsteps: []\n"
    return drawn._replace(text=with_item(drawn.text, (*path, "choice", len(branches)), branch))


def _without_branch(drawn: Drawn, branch: str) -> Drawn:
    path = path_of(branch)
    return Drawn(without(drawn.text, path), path_text(path[:-2]))


_ACTIONS: dict[str, Callable[[Drawn, str], Drawn]] = {
    **ITEM_ACTIONS,
    "move": _begun_to_move,
    "put": _put,
    "branch": _with_branch,
    "unbranch": _without_branch,
}
