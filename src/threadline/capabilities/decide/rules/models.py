"""Decision models as bodies of rules: what goes in is read like the fields of conditions, what comes out is traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from threadline.capabilities.decide.rules.body import Inputs, Outcome
from threadline.capabilities.decide.rules.model_engine import Engine
from threadline.capabilities.decide.rules.model_work import Plan, texts_of
from threadline.capabilities.foundation.conditions import Node, Path, Step, Subject
from threadline.capabilities.foundation.conditions.fields import EVENT, reader, viewed
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import MILLISECOND, SECOND, parse_time

WHOLE: Path = (EVENT, "properties")
"""What a model gets that names no inputs: all that the event carries."""
CLOCK: Path = (EVENT, "occurred_at")
"""What the time is for a model: that of the event. So it says the same whenever it is asked."""
SECONDS, MILLISECONDS = "\x02seconds\x03", "\x02milliseconds\x03"
"""Stand where an expression asks for the time, until there is an event."""

_ENDS = ("inputNode", "outputNode")


class ModelBody:
    """A decision model as the body of a rule."""

    kind = "model"
    tree: Node | None = None
    """None: a model may match any event."""

    def __init__(
        self, graph: Mapping[str, Any], inputs: Mapping[str, Path], match: Path, plain: Any, *, dates: bool
    ) -> None:
        self._graph = graph
        self._inputs = {name: ".".join(path) for name, path in inputs.items()}
        self._match = match
        self._dates = dates
        self.plain = plain
        self._nodes = {node["id"]: node for node in graph["nodes"] if node["type"] not in _ENDS}
        self._clocked = any(mark in text for text in texts_of(graph) for mark in (SECONDS, MILLISECONDS))
        # With the time in it a graph is made anew for every event; that it can be made at all is seen here.
        made = Engine(_at(graph, "1970-01-01"))
        self._engine = None if self._clocked else made
        self._plan = Plan(graph)
        paths = list(inputs.values()) or [WHOLE]
        if self._clocked:
            paths.append(CLOCK)
        self._reads = {".".join(path): _whole if path == WHOLE else reader(path) for path in paths}
        self.reads = tuple(dict.fromkeys(view for path in paths if (view := viewed(path))[0]))

    def test(self, subject: Subject) -> bool:
        """See `Body`."""
        return self._matches(self._asked(self._read(subject), trace=False)[0])

    def evaluate(self, subject: Subject) -> Outcome:
        """See `Body`."""
        return self.again(self._read(subject))

    def again(self, inputs: Mapping[str, Any]) -> Outcome:
        """See `Body`."""
        result, nodes = self._asked(inputs, trace=True)
        return Outcome(self._matches(result), _output(result), list(self._steps(nodes)), dict(inputs))

    def _read(self, subject: Subject) -> Inputs:
        return {name: read(subject) for name, read in self._reads.items()}

    def _asked(self, inputs: Mapping[str, Any], *, trace: bool) -> tuple[Any, list[Mapping[str, Any]]]:
        context = {name: inputs.get(path) for name, path in self._inputs.items()} if self._inputs else None
        if context is None:
            whole = inputs.get(".".join(WHOLE))
            context = whole if type(whole) is dict else {}
        if self._dates and any(text == "now" for text in texts_of(context)):
            raise InvalidValue("the text 'now' among the inputs: a date of it would be that of the machine's clock")
        self._plan.check(context)
        engine = self._engine or Engine(_at(self._graph, inputs.get(".".join(CLOCK))))
        return engine.ask(context, trace=trace)

    def _matches(self, result: Any) -> bool:
        if not self._match:
            return result is not None and result not in ({}, [])
        for step in self._match:
            result = result.get(step) if type(result) is dict else None
        return result is True

    def _steps(self, nodes: list[Mapping[str, Any]]) -> Iterator[Step]:
        """A step for every node that did something, in order, and then those that were not reached."""
        reached = [node for node in nodes if node["id"] in self._nodes]
        for number, node in enumerate(reached, 1):
            yield _step(number, node, self._nodes[node["id"]]["type"])
        done = {node["id"] for node in reached}
        left = (node["name"] for id, node in self._nodes.items() if id not in done)
        for number, name in enumerate(left, len(reached) + 1):
            yield Step(step=number, field=name, operator="node", expected=None, note="skipped")


def _step(number: int, node: Mapping[str, Any], kind: str) -> Step:
    name, trace = node["name"], node["traceData"]
    if kind == "switchNode":
        taken = [statement["id"] for statement in (trace or {}).get("statements", ())]
        return Step(step=number, field=name, operator="switch", expected=taken, matched=bool(taken))
    if kind == "decisionTableNode":
        # The rules that apply, and what they looked at.
        rows = trace if type(trace) is list else [] if trace is None else [trace]
        return Step(
            step=number,
            field=name,
            operator="table",
            expected=[row.get("rule") for row in rows],
            actual=[row.get("reference_map") for row in rows],
            matched=bool(rows),
            note="" if rows else "no rule applies",
        )
    return Step(step=number, field=name, operator="node", expected=None, actual=_plain(node["output"]), matched=True)


def _whole(subject: Subject) -> Any:
    return None if subject.recorded is None else subject.recorded.event.properties


def _output(result: Any) -> dict[str, Any]:
    plain = _plain(result)
    return plain if type(plain) is dict else {} if plain is None else {"result": plain}


def _plain(value: Any) -> Any:
    """A value with whole numbers as such where a double holds them exactly, so that equal numbers have one form."""
    if type(value) is float and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    if type(value) is dict:
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if type(value) is list else value


def _at(graph: Any, text: Any) -> Any:
    """The graph with the time where it asks for it."""
    if type(text) is not str:
        raise InvalidValue("the decision model asks for the time, which is that of the event, but there is no event")
    at = parse_time(text)
    return _filled(graph, {SECONDS: str(at // SECOND), MILLISECONDS: str(at // MILLISECOND)})


def _filled(value: Any, marks: Mapping[str, str]) -> Any:
    if type(value) is str:
        for mark, text in marks.items():
            value = value.replace(mark, text)
        return value
    if type(value) is dict:
        return {name: _filled(item, marks) for name, item in value.items()}
    return [_filled(item, marks) for item in value] if type(value) is list else value
