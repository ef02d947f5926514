"""The trace of the usual tree, tests of which all must hold, as canonical JSON at once: what a hash is made of.

Most of a step is known beforehand: its field, its operator, what is expected. Only what was found is written anew,
once for all rules that read it. The steps as objects are made when somebody wants to see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring
from sys import intern
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.conditions import All, Conditions, Node, Step, Subject, Test
from threadline.capabilities.conditions.compiling import value_check
from threadline.capabilities.conditions.fields import reader
from threadline.capabilities.conditions.operators import check_of
from threadline.capabilities.rules.hashing import field_name, inputs_of, kept, plain_step
from threadline.kernel.canonical import canonical_json, format_number

_HELD, _FAILED, _TYPE, _MISSING = range(4)
_ENDS = ((True, ""), (False, ""), (False, "type"), (False, "missing"))


def flat(tree: Node) -> tuple[Test, ...] | None:
    """The tests of a tree that is true if all of them are; None for any other."""
    if isinstance(tree, Test):
        return (tree,)
    parts = tree.parts if isinstance(tree, All) else ()
    return tuple(part for part in parts if isinstance(part, Test)) if _only_tests(parts) else None


def _only_tests(parts: Sequence[Node]) -> bool:
    return bool(parts) and all(isinstance(part, Test) for part in parts)


def value_text(value: Any) -> bytes:
    """A value as a decision keeps it, as canonical JSON."""
    kind = type(value)
    if kind is int:
        return b"%d" % value
    if kind is float:
        return format_number(value).encode()
    if kind is str and len(value) < 200:
        return encode_basestring(value).encode()
    return canonical_json(kept(value))


class _Layout(NamedTuple):
    """How inputs and trace are written, once it is known how many tests were asked and how the last ended."""

    inputs: list[bytes]
    """What stands around the texts of `read`: one piece more than there are of these."""
    read: tuple[int, ...]
    """The leaves that read the inputs, in the order of their names."""
    trace: list[bytes]
    """What stands around the texts of all that was asked, in order."""


class Tracer:
    """Asks tests in order, no further than to the first that fails."""

    __slots__ = ("_conditions", "_forms", "_layouts", "_leaves", "_tests")

    def __init__(self, conditions: Conditions, tests: Sequence[Test]) -> None:
        self._conditions = conditions
        self._tests = tests
        self._leaves = [
            # What is missing passes only where that is what is asked for.
            # A name that is interned is found sooner than a path.
            (
                intern(field_name(test.field)),
                reader(test.path),
                check_of(test.operator, test.operand),
                value_check(test)(None) is True,
            )
            for test in tests
        ]
        self._layouts: dict[tuple[int, int], _Layout] = {}
        self._forms: dict[int, _Form] = {}
        """By how many were asked and how it ended: all pieces of what is hashed, and which of them are what a leaf has
        read."""

    def ask(self, subject: Subject) -> Traced:
        """Whether all hold, and what is needed to tell why."""
        memo = subject.memo
        values: list[list[Any]] = []
        for name, read, check, if_missing in self._leaves:
            held = memo.get(name)
            if held is None:
                held = memo[name] = [read(subject), None]
            values.append(held)
            value = held[0]
            if value is None:
                if not if_missing:
                    return Traced(self, values, _MISSING)
            else:
                matched = check(value)
                if matched is not True:
                    return Traced(self, values, _TYPE if matched is None else _FAILED)
        return Traced(self, values, _HELD)

    def texts(self, values: list[list[Any]], end: int) -> tuple[bytes, bytes]:
        """What was read and the trace, both as canonical JSON."""
        layout, texts = self._layout(len(values), end), _texts(values)
        inputs = _interleaved(layout.inputs, [texts[leaf] for leaf in layout.read])
        return b"".join(inputs), b"".join(_interleaved(layout.trace, texts))

    def hashed(self, hasher: Any, values: list[list[Any]], end: int, before: bytes, after: bytes) -> str:
        """The hash of a decision, hex: ``hasher`` has met what comes before, the others stand around the trace.

        They must be the same whenever tests end in the same way.
        """
        asked = len(values)
        form = self._forms.get(4 * asked + end)
        if form is None:
            form = self._forms[4 * asked + end] = _form(self._layout(asked, end), before, after, asked)
        pieces, holes = form[0].copy(), form[1]
        for place, leaf in holes:
            held = values[leaf]
            text = held[1]
            if text is None:
                text = held[1] = value_text(held[0])
            pieces[place] = text
        hasher.update(b"".join(pieces))
        digest: str = hasher.hexdigest()
        return digest

    def _layout(self, asked: int, end: int) -> _Layout:
        layout = self._layouts.get((asked, end))
        if layout is None:
            layout = self._layouts[asked, end] = _laid_out(self._tests, asked, end)
        return layout

    def steps(self, values: list[list[Any]]) -> list[Step]:
        """The trace as steps."""
        found = iter(values)
        # The conditions are asked in the very same order, so that each takes the value that it has read.
        return self._conditions.retrace(lambda test: next(found)[0]).steps


_Form = tuple[list[bytes], tuple[tuple[int, int], ...]]


def _form(layout: _Layout, before: bytes, after: bytes, asked: int) -> _Form:
    middle = layout.inputs[-1] + before + layout.trace[0]
    parts = [*layout.inputs[:-1], middle, *layout.trace[1:-1], layout.trace[-1] + after]
    leaves = (*layout.read, *range(asked))
    return _interleaved(parts, [b""] * len(leaves)), tuple((2 * n + 1, leaf) for n, leaf in enumerate(leaves))


def _texts(values: list[list[Any]]) -> list[bytes]:
    for held in values:
        if held[1] is None:
            held[1] = value_text(held[0])
    return [held[1] for held in values]


def _interleaved(parts: list[bytes], texts: list[bytes]) -> list[bytes]:
    """Texts with what stands around them."""
    pieces = [b""] * (2 * len(texts) + 1)
    pieces[::2] = parts
    pieces[1::2] = texts
    return pieces


class Traced:
    """What came of asking: an `Answer` whose parts are made when they are looked at."""

    __slots__ = ("end", "matched", "tracer", "values")

    output: dict[str, Any] = {}  # noqa: RUF012 — conditions reckon nothing, and nobody changes what they do not reckon

    def __init__(self, tracer: Tracer, values: list[list[Any]], end: int) -> None:
        self.tracer = tracer
        self.values = values
        self.end = end
        self.matched = end == _HELD

    @property
    def texts(self) -> tuple[bytes, bytes]:
        """What was read and the trace, as canonical JSON."""
        return self.tracer.texts(self.values, self.end)

    @property
    def steps(self) -> list[Step]:
        """See `Answer`."""
        return self.tracer.steps(self.values)

    @property
    def inputs(self) -> dict[str, Any]:
        """See `Answer`."""
        return inputs_of(self.steps)


def _laid_out(tests: Sequence[Test], asked: int, end: int) -> _Layout:
    trace = [b"["]
    for leaf, test in enumerate(tests):
        if leaf:
            trace[-1] += b","
        if leaf >= asked:
            trace[-1] += _skipped_text(test, leaf + 1)
            continue
        # `exists: false` holds of what is missing; the note says so all the same.
        held = (True, "missing") if test.operator == "exists" and not test.operand else (True, "")
        trace[-1] += b'{"actual":'
        trace.append(_step_text(test, leaf + 1, *(_ENDS[end] if leaf == asked - 1 and end else held)))
    trace[-1] += b"]"
    leaves = {field_name(test.field): leaf for leaf, test in reversed(list(enumerate(tests[:asked])))}
    # The form itself knows the order of names.
    ordered = msgspec.json.decode(canonical_json(leaves), type=dict[str, int])
    names = [encode_basestring(name).encode() + b":" for name in ordered]
    return _Layout([b"{" + names[0], *(b"," + name for name in names[1:]), b"}"], tuple(ordered.values()), trace)


def _plain_operand(test: Test) -> Any:
    return list(test.operand) if type(test.operand) is tuple else test.operand


def _step_text(test: Test, number: int, matched: bool, note: str) -> bytes:
    """What follows what was found."""
    rest = {"expected": _plain_operand(test), "field": test.field, "matched": matched, "note": note,
            "operator": test.operator, "step": number}  # fmt: skip
    return b"," + canonical_json(rest)[1:]


def _skipped_text(test: Test, number: int) -> bytes:
    step = Step(step=number, field=test.field, operator=test.operator, expected=_plain_operand(test), note="skipped")
    return canonical_json(plain_step(step))
