"""The trace of a tree: which conditions were asked, what each found, and the canonical JSON of both, written at once.

Most of a step is known beforehand: its field, its operator, what is expected. Only what was found is written anew,
once for all trees that are asked about one subject.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from sys import intern
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from threadline.capabilities.foundation.conditions.compiling import Leaf
from threadline.capabilities.foundation.conditions.fields import Subject
from threadline.capabilities.foundation.conditions.operators import EXACT_INTEGER_MAX, Check
from threadline.capabilities.foundation.conditions.tree import All, Node, Not, Test
from threadline.kernel.canonical import format_number, standard_json
from threadline.kernel.disclosure import NOT_PERSONAL, SENTENCE, free
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import DECISION_VALUE_BYTES_MAX, TRACE_LAYOUTS_MAX

_decoded = msgspec.json.Decoder(dict[str, int]).decode

_MATCHED, _FAILED, _TYPE, _MISSING, _SKIPPED = range(5)
_MEANINGS: tuple[tuple[bool | None, str], ...] = (
    (True, ""),
    (False, ""),
    (False, "type"),
    (False, "missing"),
    (None, "skipped"),
)


@key_fields("field", "operator", "expected", "actual", "matched")
class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of a tree, as it was found or passed over."""

    step: int
    """From 1, in the order in which conditions stand in the tree."""
    field: Annotated[str | list[str], NOT_PERSONAL]
    operator: str
    expected: Annotated[Any, free(named_by="field")]
    actual: Annotated[Any, free(named_by="field")] = None
    matched: bool | None = None
    """None: it was skipped, because the answer was known before."""
    note: Annotated[str, NOT_PERSONAL] = ""
    """``missing``, ``type`` (the operator has no meaning for a value of that type) or ``skipped``."""
    reason: Annotated[str, SENTENCE] = ""
    """Why the view has no value for the field, or an incomplete one, if it says so."""


def field_name(field: str | list[str]) -> str:
    """The name of a field among inputs: as it is written, a list of steps as JSON."""
    return field if type(field) is str else standard_json(field).decode()


def shortened(value: Any) -> Any:
    """A value as a trace keeps it: itself, or if it is long, the hash of its canonical JSON and how long that is."""
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str and 4 * len(value) < DECISION_VALUE_BYTES_MAX:
        return value
    written = standard_json(value)
    if len(written) <= DECISION_VALUE_BYTES_MAX:
        return value
    return {"sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written)}


def is_shortened(value: Any) -> bool:
    """Whether a kept value is only the hash of what was read."""
    return type(value) is dict and set(value) == {"sha256", "bytes"}


def plain_step(step: Step) -> dict[str, Any]:
    """A step of a trace as a decision keeps it, with every member, so that equal steps have equal forms."""
    return {
        "step": step.step,
        "field": step.field,
        "operator": step.operator,
        "expected": step.expected,
        "actual": shortened(step.actual),
        "matched": step.matched,
        "note": step.note,
    }


ValueRead = tuple[Any, str, Any]
"""What was read under one name, its canonical JSON as a trace keeps it, and the value that a trace keeps."""


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


_Link = tuple[str, Callable[[Any], Any], Check, bool, int, "_Next", "_Next"]
"""One condition: what it reads, by which name and how, its check, whether it matches what is missing, its number from
0, and what is asked next if it matched and if not. A tree is asked from link to link, without its groups. A plain
tuple, because it is taken apart at every step."""
_Next = _Link | tuple[()] | None
"""The condition that is asked next; None: the tree matches, ``()``: it does not."""


class _Layout(NamedTuple):
    """How inputs and trace are written, once it is known which conditions were asked and how each ended."""

    inputs: list[str]
    """What stands around the texts of `read`: one piece more than there are of these."""
    read: tuple[str, ...]
    """The names of the inputs, in their order."""
    trace: list[str]
    """What stands around the texts of all that was asked, in order."""
    asked: list[str | None]
    """For each condition the name of what it read; None: it was skipped."""
    steps: list[dict[str, Any]]
    """The trace without the values found; never changed."""


class Tracer:
    """Asks the conditions of a tree in order, no further than until the answer is known.

    What was asked is one number: after a leading 1 two bits for each condition that was asked, with how it ended. Which
    condition comes next follows from how those before it ended, so that equal numbers are equal traces but for values.
    """

    __slots__ = ("_first", "_layouts", "_leaves", "_names", "writers")

    def __init__(self, tree: Node, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        # A name that is interned is found sooner than a path.
        self._names = [intern(field_name(leaf.test.field)) for leaf in leaves]
        self._first = _linked(tree, iter([*zip(range(len(leaves)), self._names, leaves, strict=True)][::-1]), None, ())
        self._layouts: dict[int, _Layout] = {}
        self.writers: dict[int, _Writer] = {}
        """What was asked -> what writes inputs and trace of it, as far as known; `writer` makes the others."""

    def ask(self, subject: Subject) -> Traced:
        """Whether a subject matches, and what is needed to tell why."""
        memo: dict[str, ValueRead] = subject.memo
        asked = 1
        link = self._first
        while link:
            name, read, check, matches_missing, _, matched, failed = link
            known = memo.get(name)
            if known is None:
                known = memo[name] = value_read(read(subject))
            value = known[0]
            asked <<= 2
            if value is None:
                if matches_missing:
                    link = matched
                else:
                    asked |= _MISSING
                    link = failed
            else:
                outcome = check(value)
                if outcome is True:
                    link = matched
                else:
                    asked |= _TYPE if outcome is None else _FAILED
                    link = failed
        return Traced(self, memo, asked, link is None)

    def again(self, inputs: Mapping[str, Any]) -> Traced:
        """The same from values that were read before, by the names of their fields."""
        subject = Subject(lambda _: None)
        subject.memo.update((name, value_read(inputs.get(name))) for name in self._names)
        return self.ask(subject)

    def inputs(self, memo: Mapping[str, ValueRead], asked: int) -> dict[str, Any]:
        """What was read, as a decision keeps it."""
        return {name: memo[name][2] for name in self._layout(asked).read}

    def trace(self, memo: Mapping[str, ValueRead], asked: int) -> list[dict[str, Any]]:
        """The trace, as a decision keeps it."""
        layout = self._layout(asked)
        steps = [step.copy() for step in layout.steps]
        for step, name in zip(steps, layout.asked, strict=True):
            if name is not None:
                step["actual"] = memo[name][2]
        return steps

    def steps(self, memo: Mapping[str, ValueRead], asked: int) -> list[Step]:
        """The trace with each value as it was read, however long it is."""
        actual = [None if name is None else memo[name][0] for name in self._layout(asked).asked]
        ends = zip(self._leaves, self._outcomes(asked), actual, strict=True)
        return [_step_of(number, *end) for number, end in enumerate(ends, 1)]

    def writer(self, asked: int) -> _Writer:
        """What writes inputs and trace of what was asked; it is kept."""
        layout = self._layout(asked)
        made = self.writers[asked] = _writer(layout)
        return made

    def _outcomes(self, asked: int) -> list[int]:
        outcomes = [_SKIPPED] * len(self._leaves)
        link = self._first
        for shift in range(asked.bit_length() - 3, -1, -2):
            assert link, "each outcome is of a condition that was asked"
            *_, number, matched, failed = link
            outcome = outcomes[number] = asked >> shift & 3
            link = failed if outcome else matched
        return outcomes

    def _layout(self, asked: int) -> _Layout:
        layout = self._layouts.get(asked)
        if layout is None:
            if len(self._layouts) >= TRACE_LAYOUTS_MAX:
                self._layouts.clear()
                self.writers.clear()
            layout = self._layouts[asked] = _laid_out(self._leaves, self._names, self._outcomes(asked))
        return layout


def _linked(node: Node, leaves: Iterator[tuple[int, str, Leaf]], matched: _Next, failed: _Next) -> _Next:
    """The link by which a part of a tree begins. ``leaves`` come from the last to the first, as links are made."""
    if isinstance(node, Test):
        number, name, leaf = next(leaves)
        return name, leaf.read, leaf.check, leaf.matches_missing, number, matched, failed
    if isinstance(node, Not):
        return _linked(node.part, leaves, failed, matched)
    for part in reversed(node.parts):
        if isinstance(node, All):
            matched = _linked(part, leaves, matched, failed)
        else:
            failed = _linked(part, leaves, matched, failed)
    return matched if isinstance(node, All) else failed


_Writer = Callable[[Mapping[str, ValueRead], str, str], str]


def _writer(layout: _Layout) -> _Writer:
    """What writes the pieces of a layout with the texts of what was read between them.

    Compiled, because one f-string of constants is put together three times as fast as a list of its pieces.
    """
    constants: dict[str, str] = {}

    def pieces(mark: str, parts: Sequence[str], names: Sequence[str]) -> str:
        constants.update((f"{mark}{number}", part) for number, part in enumerate(parts))
        constants.update((f"{mark}n{number}", name) for number, name in enumerate(names, 1))
        rest = (f"{{m[{mark}n{number}][1]}}{{{mark}{number}}}" for number in range(1, len(parts)))
        return f"{{{mark}0}}{''.join(rest)}"

    inputs = pieces("i", layout.inputs, layout.read)
    trace = pieces("t", layout.trace, [name for name in layout.asked if name is not None])
    # Nothing but numbers is put in: names and texts are reached as constants.
    made: _Writer = eval(f"lambda m, b, a: f'{inputs}{{b}}{trace}{{a}}'", constants)  # noqa: S307 - see above
    return made


class Traced(msgspec.Struct, eq=False):
    """What came of asking a tree; the parts that say why are made when they are looked at.

    A struct, because every rule that is asked makes one, and a struct is made without a call of Python.
    """

    _tracer: Tracer
    _memo: Mapping[str, ValueRead]
    _asked: int
    matched: bool
    output: ClassVar[dict[str, Any]] = {}  # conditions compute nothing, and nobody changes what they do not compute

    @property
    def inputs(self) -> dict[str, Any]:
        """What was read by name of field, as a decision keeps it."""
        return self._tracer.inputs(self._memo, self._asked)

    @property
    def trace(self) -> list[dict[str, Any]]:
        """Every condition in order, as a decision keeps it."""
        return self._tracer.trace(self._memo, self._asked)

    @property
    def steps(self) -> list[Step]:
        """Every condition in order, with each value as it was read."""
        return self._tracer.steps(self._memo, self._asked)

    def written(self, between: str, after: str) -> str:
        """The canonical JSON of `inputs` and `trace`, with ``between`` between them and ``after`` after them."""
        # Looked up here: of every rule that is asked a hash is made, and each call less of ours is a twentieth of it.
        writer = self._tracer.writers.get(self._asked) or self._tracer.writer(self._asked)
        return writer(self._memo, between, after)


def _step_of(number: int, leaf: Leaf, outcome: int, actual: Any = None) -> Step:
    matched, note = _MEANINGS[outcome]
    if outcome == _MATCHED and leaf.matches_missing:
        # `exists: false` matches what is missing; the note says so all the same.
        note = "missing"
    test = leaf.test
    expected = list(test.operand) if isinstance(test.operand, tuple) else test.operand
    return Step(
        step=number,
        field=test.field,
        operator=test.operator,
        expected=expected,
        actual=actual,
        matched=matched,
        note=note,
    )


def _laid_out(leaves: Sequence[Leaf], names: Sequence[str], outcomes: Sequence[int]) -> _Layout:
    trace = ["["]
    steps: list[dict[str, Any]] = []
    asked = [None if outcome == _SKIPPED else name for name, outcome in zip(names, outcomes, strict=True)]
    for number, (leaf, outcome, name) in enumerate(zip(leaves, outcomes, asked, strict=True), 1):
        steps.append(plain_step(_step_of(number, leaf, outcome)))
        written = standard_json(steps[-1]).decode()
        trace[-1] += "," if number > 1 else ""
        if name is None:
            trace[-1] += written
        else:
            trace[-1] += '{"actual":'
            trace.append(written.removeprefix('{"actual":null'))
    trace[-1] += "]"
    # The form itself knows the order of names.
    ordered = _decoded(standard_json({name: 0 for name in asked if name is not None}))
    texts = [encode_basestring(name) + ":" for name in ordered]
    inputs = ["{" + texts[0], *("," + text for text in texts[1:]), "}"]
    return _Layout(inputs, tuple(map(intern, ordered)), trace, asked, steps)
