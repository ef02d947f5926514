"""A journey that is being written, as a drawing shows it: also where some of its steps are not right yet.

Each step stands under the path that leads to it in the text, such as ``steps.2.then.0``: unlike the ids of steps, which
reports use, every step has one, whatever is wrong with it. Between the steps stand the points at which another one may
be put in, each under the path that it would have, with a ``+``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import yaml

from threadline.capabilities.foundation.conditions.wording import condition_text
from threadline.capabilities.foundation.definitions import Document, Noted, Part, Plain
from threadline.capabilities.foundation.definitions.declaring import Form, one_or_many, struct
from threadline.capabilities.foundation.definitions.nested_splicing import Path, value_at
from threadline.capabilities.reach.journeys.actions import FORMS as ACTIONS
from threadline.capabilities.reach.journeys.drawing import entered_by, step_text
from threadline.capabilities.reach.journeys.steps import CONDITION_FORM, SEND_FORM, WAIT_FORM, Step, Trigger

ADD = "+"
"""What the id of a point begins with, and its kind is called."""
KINDS = ("send", *ACTIONS, "wait", "if", "choice", "exit")
_FORMS: dict[str, Form[Any]] = {"send": SEND_FORM, **ACTIONS, "wait": WAIT_FORM, "if": CONDITION_FORM}
_TRIGGERS = one_or_many(struct(Trigger), most=20)


class OutlinedWay(msgspec.Struct, kw_only=True):
    """An arrow to another step, or to a point; empty: to the end."""

    to: str
    when: str = ""


class OutlinedStep(msgspec.Struct, kw_only=True):
    """A step or a point, in the form in which steps of a journey in force are drawn."""

    step: str
    """The path, see above."""
    id: str
    """What reports will call it; empty for a point."""
    kind: str
    """One of `KINDS`; ``unknown``, or ``+`` for a point."""
    does: str
    ways: list[OutlinedWay]
    joins: str = ""
    first_line: int = 0
    last_line: int = 0


class Outline(msgspec.Struct, kw_only=True):
    """A journey as it is drawn."""

    entered_by: str
    steps: list[OutlinedStep]


def path_text(path: Sequence[str | int]) -> str:
    """A path as it is written."""
    return ".".join(map(str, path))


def path_of(text: str) -> Path:
    """A path that was written."""
    return tuple(int(key) if key.isdecimal() else key for key in text.split(".")) if text else ()


def outlined(text: str) -> Outline | None:
    """The journey of a text; None where it is no mapping at all."""
    document = Document("")
    root = document.compose(text)
    if root is None:
        return (
            None
            if document.problems
            else Outline(entered_by=entered_by(()), steps=[*_Drawing(Plain(document, "")).all([])])
        )
    with suppress(Noted):
        whole = Plain(document, "")
        part = whole.part(root)
        if isinstance(part.value, dict):
            drawing = _Drawing(whole)
            steps = part.value.get("steps")
            return Outline(entered_by=_entered_by(part), steps=[*drawing.all(steps if isinstance(steps, list) else [])])
    return None


def _entered_by(part: Part) -> str:
    if "trigger" not in part.value:
        return entered_by(())
    triggers = _made(_TRIGGERS, part.inner("trigger"))
    return "not finished" if triggers is None else entered_by(triggers)


class _Drawing:
    """Steps as they are drawn, in the order in which they are written."""

    def __init__(self, whole: Plain) -> None:
        self._whole = whole

    def all(self, steps: list[Any]) -> Iterator[OutlinedStep]:
        """Those of a journey."""
        return self._sequence(steps, ("steps",), "", "")

    def _sequence(self, steps: list[Any], path: Path, prefix: str, after: str) -> Iterator[OutlinedStep]:
        """The points and steps of a list, the last of which leads to ``after``."""
        for number, value in enumerate(steps):
            at = (*path, number)
            following = _point((*path, number + 1))
            is_last_exit = number == len(steps) - 1 and isinstance(value, dict) and "exit" in value
            inner = isinstance(value, dict) and isinstance(value.get("steps"), list)
            first = _point((*at, "steps", 0)) if inner else path_text(at)
            yield _added(at, first)
            id = str((value.get("id") if isinstance(value, dict) else "") or f"{prefix}{number + 1}")
            if inner:
                yield from self._sequence(value["steps"], (*at, "steps"), f"{id}.", following)
            else:
                yield from self._step(value, at, id, "" if is_last_exit else following)
            if is_last_exit:
                return
        yield _added((*path, len(steps)), after)

    def _step(self, value: Any, at: Path, id: str, following: str) -> Iterator[OutlinedStep]:
        """A step, and the sequences in it."""
        values = value if isinstance(value, dict) else {}
        kind = next((kind for kind in KINDS if kind in values), "unknown")
        does, whens = _worded(kind, Part(self._whole, value, at))
        sequences = [(when, (*at, *inner)) for when, inner in whens]
        begin, end = self._lines(at)
        yield OutlinedStep(
            step=path_text(at),
            id=id,
            kind=kind,
            does=does,
            ways=[OutlinedWay(to=_point((*path, 0)), when=when) for when, path in sequences]
            or [OutlinedWay(to=following)],
            joins=following if sequences else "",
            first_line=begin,
            last_line=end,
        )
        for _, path in sequences:
            inner = path[len(at) :]
            _, number, *_ = (*inner, 0)
            part_of_id = number + 1 if isinstance(number, int) and inner[0] == "choice" else inner[0]
            yield from self._sequence(_list_at(values, inner), path, f"{id}.{part_of_id}.", following)

    def _lines(self, at: Path) -> tuple[int, int]:
        node = self._whole.nearest(at)
        return node.start_mark.line + 1, _last_line(node)


def _worded(kind: str, part: Part) -> tuple[str, list[tuple[str, Path]]]:
    """What a step does, and the ways that part at it: when, and where the list of its steps stands in the step."""
    if kind == "choice":
        return "choice", [*_branches(part), ("else", ("else",))]
    if kind == "exit":
        return step_text(Step(exit=str(part.value[kind]))), []
    if kind not in _FORMS:
        return "not finished", []
    value = _made(_FORMS[kind], part.inner(kind))
    ways: list[tuple[str, Path]] = [("yes", ("then",)), ("no", ("else",))]
    if value is None:
        return f"{kind} …", ways if kind == "if" else []
    if kind == "wait":
        ways = ways if value.timeout is not None else ways[:1] if "then" in part.value else []
        ways = ways if value.is_for_event else []
    step = Step(condition=value) if kind == "if" else Step(**{kind: value})
    return step_text(step), ways if kind in ("wait", "if") else []


def _branches(part: Part) -> Iterator[tuple[str, Path]]:
    branches = part.value["choice"]
    for number, branch in enumerate(branches if isinstance(branches, list) else []):
        inner = part.inner("choice").inner(number)
        has_condition = isinstance(branch, dict) and "when" in branch
        condition = _made(CONDITION_FORM, inner.inner("when")) if has_condition else None
        yield ("…" if condition is None else condition_text(condition.tree)), ("choice", number, "steps")


def _list_at(values: Any, path: Path) -> list[Any]:
    values = value_at(values, path)
    return values if isinstance(values, list) else []


def _made(form: Form[Any], part: Part) -> Any:
    """The value of a part; None where it is not right."""
    try:
        return form.read(part)
    except Noted:
        return None


def _point(path: Sequence[str | int]) -> str:
    return f"{ADD}{path_text(path)}"


def _added(path: Sequence[str | int], to: str) -> OutlinedStep:
    return OutlinedStep(step=_point(path), id="", kind=ADD, does=ADD, ways=[OutlinedWay(to=to)])


def _last_line(node: yaml.Node) -> int:
    """The line on which a value ends; one on lines of its own ends before the next one begins."""
    if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line) + 1
