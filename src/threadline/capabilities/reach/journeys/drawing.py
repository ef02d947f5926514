"""A journey as a picture: a Mermaid flowchart, and a tree for terminals, each with how many people wait where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from threadline.capabilities.foundation.conditions.wording import condition_text
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.program import END, Node, compiled, named_steps
from threadline.capabilities.reach.journeys.steps import On, Send, Step, Wait
from threadline.kernel.calendar import WEEKDAYS
from threadline.kernel.counted import counted
from threadline.kernel.time import HOUR, MINUTE, duration_text

Counts = Mapping[str, int]
"""Step -> people who wait there."""


def mermaid(journey: Journey, counts: Counts) -> str:
    """A flowchart as Mermaid draws it."""
    program = compiled(journey)
    names = {id: f"s{number}" for number, id in enumerate(program.nodes)} | {END: "done"}
    lines = ["flowchart TD", f'  start(["{_escaped(entered_by(journey.trigger))}"]) --> {names[program.first]}']
    for node in program.nodes.values():
        people = _people(counts.get(node.id, 0))
        label = _escaped(" · ".join(filter(None, (node.id, step_text(node.step), people))))
        opening, closing = ("{{", "}}") if len(node.ways) > 1 else ("[", "]")
        lines.append(f'  {names[node.id]}{opening}"{label}"{closing}')
        lines += [
            f"  {names[node.id]} -->" + (f'|"{_escaped(text)}"|' if text else "") + f" {names[way]}"
            for text, way in arrows(node)
        ]
    return "\n".join([*lines, '  done(["done"])'])


def arrows(node: Node) -> list[tuple[str, str]]:
    """Where a step leads to: when, in words, and the next step."""
    if node.step.choice:
        branches = [(condition_text(conditions.tree), way) for conditions, way in node.branches]
        return [*branches, ("else", node.otherwise)]
    if len(node.ways) > 1:
        return [("yes", node.then), ("no", node.otherwise)]
    return [("", node.ways[0])]


def tree(journey: Journey, counts: Counts) -> str:
    """The steps as a tree of lines."""
    head = f"{journey.name}, version {journey.version}: {entered_by(journey.trigger)}"
    lines = [head, *_branches(_lines(journey.steps, "", counts))]
    lines += [f"on {on_text(mail)}: {send_text(mail.send)}" for mail in journey.events]
    lines += [f"leaves on {on_text(on)}" for on in journey.exit_on]
    if journey.timeout:
        lines.append(f"leaves after {duration_text(journey.timeout)}")
    return "\n".join(lines)


_Lines = Sequence[tuple[str, "_Lines"]]


def _lines(steps: tuple[Step, ...], prefix: str, counts: Counts) -> _Lines:
    drawn: list[tuple[str, _Lines]] = []
    for id, step, inner in named_steps(steps, prefix):
        people = _people(counts.get(id, 0))
        text = f"{id}  {step_text(step)}" + (f"  ({people})" if people else "")
        conditions = [condition_text(branch.conditions.tree) for branch in step.choice]
        yes, no = ("came", "did not come") if step.wait is not None else ("then", "else")
        labels = [*(f"if {condition}" for condition in conditions), "", yes, no]
        below: list[tuple[str, _Lines]] = []
        for label, (begins, sequence) in zip(labels, inner, strict=True):
            if sequence:
                lines = _lines(sequence, begins, counts)
                below += [(label, lines)] if label else lines
        drawn.append((text, below))
    return drawn


def _branches(lines: _Lines) -> Iterator[str]:
    for number, (text, below) in enumerate(lines, 1):
        last = number == len(lines)
        yield f"{'└' if last else '├'} {text}"
        yield from (f"{' ' if last else '│'} {line}" for line in _branches(below))


def entered_by(trigger: Sequence[On]) -> str:
    """What lets people enter, in words."""
    return " or ".join(map(on_text, trigger)) or "entered by request"


def kind_of(step: Step) -> str:
    """What a step is: ``send``, ``wait``, ``if``, ``choice``, ``exit``, or the kind of its action."""
    if step.action is not None:
        return step.action.kind
    if step.condition is not None:
        return "if"
    return next(kind for kind in ("send", "wait", "choice", "exit") if getattr(step, kind))


def step_text(step: Step) -> str:
    """A step in words, what is inside it left out."""
    if step.send is not None:
        return send_text(step.send)
    if step.action is not None:
        return step.action.words
    if step.wait is not None:
        return _wait_text(step.wait)
    if step.condition is not None:
        return f"if {condition_text(step.condition.tree)}"
    if step.choice:
        return "choice"
    return f"exit: {step.exit}" if step.exit else "steps"


def send_text(send: Send) -> str:
    """A mail in words."""
    return "send " + " or ".join(arm.name or arm.template for arm in send.arms).replace("_", " ")


def on_text(on: On) -> str:
    """The events in words."""
    named = f"enters {on.segment}" if on.segment else f"leaves {on.segment_left}" if on.segment_left else ""
    return (named or " or ".join(on.event)).replace("_", " ")


def _wait_text(wait: Wait) -> str:
    if wait.is_for_event:
        return f"wait for {on_text(wait)}" + (f", at most {duration_text(wait.timeout)}" if wait.timeout else "")
    parts = [duration_text(wait.size)] if wait.size else []
    if wait.until is not None:
        days = ", ".join(WEEKDAYS[day] for day in wait.weekdays)
        parts.append(f"until {time_text(wait.until)}" + (f" on {days}" if days else ""))
    return "wait " + ", then ".join(parts)


def time_text(at: int) -> str:
    """A time of day as clocks show it."""
    return f"{at // HOUR:02}:{at % HOUR // MINUTE:02}"


def _people(count: int) -> str:
    return counted(count, "person") if count else ""


def _escaped(text: str) -> str:
    # Mermaid reads quotes and its own signs even inside a label.
    for sign in '#&"<>{}|':
        text = text.replace(sign, f"#{ord(sign)};" if sign != "#" else "＃")
    return text
