"""The trace of the usual tree, tests of which all must hold, as it is hashed at once.

Most of a step is known beforehand: its field, its operator, what is expected. Only what was found is written anew,
once for all rules that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from sys import intern
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.decide.rules.hashing import field_name, plain_step, shortened
from threadline.capabilities.foundation.conditions import All, Node, Subject, Test
from threadline.capabilities.foundation.conditions.compiling import Leaf, step_of
from threadline.capabilities.foundation.conditions.operators import EXACT_INTEGER_MAX
from threadline.kernel.canonical import format_number, standard_json

_decoded = msgspec.json.Decoder(dict[str, int]).decode

_MATCHED, _FAILED, _TYPE, _MISSING = range(4)
_ENDS = ((True, ""), (False, ""), (False, "type"), (False, "missing"))


def is_flat(tree: Node) -> bool:
    """Whether a tree is true exactly if all of its tests are, without groups inside."""
    return isinstance(tree, Test) or (isinstance(tree, All) and all(isinstance(part, Test) for part in tree.parts))


ValueRead = tuple[Any, str, Any]
"""What was read under one name, the text of it that is hashed, and the value that a decision keeps."""


def value_read(value: Any) -> ValueRead:
    """What is remembered of a value that was read."""
    kind = type(value)
    if kind is int and -EXACT_INTEGER_MAX <= value <= EXACT_INTEGER_MAX:
        return value, str(value), value
    if kind is float:
        return value, format_number(value), value
    if kind is str and len(value) < 200:
        return value, encode_basestring(value), value
    short = shortened(value)
    return value, standard_json(short).decode(), short


class _Layout(NamedTuple):
    """How inputs and trace are written, once it is known how many tests were asked and how the last ended."""

    inputs: list[str]
    """What stands around the texts of `read`: one piece more than there are of these."""
    read: tuple[str, ...]
    """The names of the inputs, in their order."""
    trace: list[str]
    """What stands around the texts of all that was asked, in order."""
    steps: list[dict[str, Any]]
    """The trace without the values found; never changed."""


class Tracer:
    """Asks tests in order, no further than to the first that fails.

    An end is one number: four times how many tests were asked, and how the last of them ended.
    """

    __slots__ = ("_hashed", "_layouts", "_leaves", "_named")

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        # A name that is interned is found sooner than a path.
        self._named = [(intern(field_name(leaf.test.field)), *leaf[1:]) for leaf in leaves]
        self._layouts: dict[int, _Layout] = {}
        self._hashed: dict[int, _Form] = {}
        """By how it ended: what writes all that is hashed."""

    def ask(self, subject: Subject) -> Traced:
        """Whether all hold, and what is needed to tell why."""
        memo: dict[str, ValueRead] = subject.memo
        end = 0
        for name, read, check, matches_missing in self._named:
            end += 4
            known = memo.get(name)
            if known is None:
                known = memo[name] = value_read(read(subject))
            value = known[0]
            if value is None:
                if not matches_missing:
                    return Traced(self, memo, end + _MISSING)
            else:
                matched = check(value)
                if matched is not True:
                    return Traced(self, memo, end + (_TYPE if matched is None else _FAILED))
        return Traced(self, memo, end)

    def inputs(self, memo: Mapping[str, ValueRead], end: int) -> dict[str, Any]:
        """What was read, as a decision keeps it."""
        return {name: memo[name][2] for name in self._layout(end).read}

    def trace(self, memo: Mapping[str, ValueRead], end: int) -> list[dict[str, Any]]:
        """The trace, as a decision keeps it."""
        steps = [step.copy() for step in self._layout(end).steps]
        for step, (name, *_) in zip(steps[: end // 4], self._named, strict=False):
            step["actual"] = memo[name][2]
        return steps

    def hashed(self, hasher: Any, memo: Mapping[str, ValueRead], end: int, before: bytes, after: bytes) -> str:
        """The hash of a decision, hex: ``hasher`` has met what comes before, the others stand around the trace.

        They must be the same whenever tests end in the same way.
        """
        form = self._hashed.get(end)
        if form is None:
            layout = self._layout(end)
            middle = layout.inputs[-1] + before.decode() + layout.trace[0]
            parts = [*layout.inputs[:-1], middle, *layout.trace[1:-1], layout.trace[-1] + after.decode()]
            form = self._hashed[end] = _form(parts, (*layout.read, *self._asked(end)))
        hasher.update(form(memo).encode())
        digest: str = hasher.hexdigest()
        return digest

    def _asked(self, end: int) -> list[str]:
        return [name for name, *_ in self._named[: end // 4]]

    def _layout(self, end: int) -> _Layout:
        layout = self._layouts.get(end)
        if layout is None:
            layout = self._layouts[end] = _laid_out(self._leaves, *divmod(end, 4))
        return layout


_Form = Callable[[Mapping[str, ValueRead]], str]


def _form(parts: Sequence[str], names: Sequence[str]) -> _Form:
    """What writes these parts, one more than there are names, with the texts of what was read between them.

    Compiled, because one f-string of constants is put together three times as fast as a list of its pieces.
    """
    constants = {f"p{number}": part for number, part in enumerate(parts)}
    constants |= {f"n{number}": name for number, name in enumerate(names, 1)}
    rest = "".join(f"{{m[n{number}][1]}}{{p{number}}}" for number in range(1, len(parts)))
    made: _Form = eval(f"lambda m: f'{{p0}}{rest}'", constants)  # noqa: S307 - nothing but numbers is put in
    return made


class Traced:
    """What came of asking: an `Answer` whose parts are made when they are looked at."""

    __slots__ = ("end", "matched", "memo", "tracer")

    output: dict[str, Any] = {}  # noqa: RUF012 — conditions compute nothing, and nobody changes what they do not compute

    def __init__(self, tracer: Tracer, memo: Mapping[str, ValueRead], end: int) -> None:
        self.tracer = tracer
        self.memo = memo
        self.end = end
        self.matched = not end & 3

    @property
    def inputs(self) -> dict[str, Any]:
        """See `Answer`."""
        return self.tracer.inputs(self.memo, self.end)

    @property
    def trace(self) -> list[dict[str, Any]]:
        """See `Answer`."""
        return self.tracer.trace(self.memo, self.end)


def _laid_out(leaves: Sequence[Leaf], asked: int, end: int) -> _Layout:
    trace = ["["]
    steps: list[dict[str, Any]] = []
    for number, leaf in enumerate(leaves, 1):
        # `exists: false` holds of what is missing; the note says so all the same.
        outcome: tuple[bool | None, str] = (True, "missing") if leaf.matches_missing else (True, "")
        if number > asked:
            outcome = (None, "skipped")
        elif number == asked and end:
            outcome = _ENDS[end]
        steps.append(plain_step(step_of(number, leaf.test, *outcome)))
        written = standard_json(steps[-1]).decode()
        trace[-1] += "," if number > 1 else ""
        if number > asked:
            trace[-1] += written
        else:
            trace[-1] += '{"actual":'
            trace.append(written.removeprefix('{"actual":null'))
    trace[-1] += "]"
    # The form itself knows the order of names.
    ordered = _decoded(standard_json({field_name(leaf.test.field): 0 for leaf in leaves[:asked]}))
    names = [encode_basestring(name) + ":" for name in ordered]
    inputs = ["{" + names[0], *("," + name for name in names[1:]), "}"]
    return _Layout(inputs, tuple(map(intern, ordered)), trace, steps)
