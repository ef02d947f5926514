"""The steps of a journey, and the events that start, move and end one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import EVERY_EVENT, Conditions, Where
from threadline.capabilities.foundation.conditions.fields import RELATIVE, wrong_path
from threadline.capabilities.foundation.conditions.forms import WHERE_FORM, when
from threadline.capabilities.foundation.conditions.tree import Node, Test, mapped, tests_of
from threadline.capabilities.foundation.conditions.where import read_where
from threadline.capabilities.foundation.definitions import Part
from threadline.capabilities.foundation.definitions.declaring import (
    NAME_FORM,
    Form,
    Problems,
    by_name,
    choice,
    duration,
    either,
    event_type,
    listed,
    name_of,
    one_or_many,
    struct,
    text,
)
from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT
from threadline.capabilities.reach.journeys.actions import FORMS, JOURNEY, Action
from threadline.kernel.calendar import WEEKDAYS, time_of_day
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import EVENT_TYPE_LENGTH_MAX, JOURNEY_STEPS_MAX, JOURNEY_VARIABLES_MAX
from threadline.kernel.names import PATH_NAME
from threadline.kernel.time import YEAR

JOURNEYS = "journeys"
"""The section, the projection and the policy."""
DURATION_MAX = 5 * YEAR


def _field(written: str) -> tuple[str, ...]:
    path = tuple(written.split("."))
    problem = wrong_path(path)
    if problem or path[0] in RELATIVE:
        raise InvalidValue(problem or "the time itself, such as traits.renewal")
    return path


def _time(written: str) -> int:
    parsed = time_of_day(written)
    assert parsed is not None, "the pattern has passed"
    return parsed


FIELD_FORM = text("a field, such as event.properties.order").then(_field, shown=".".join)
_SEGMENT, _TEMPLATE = name_of("segment"), name_of("template", PATH_NAME)
_TEMPLATE_NAME = text("the name of a template", PATH_NAME.pattern)
TIME_FORM = text("a time of day in quotes, such as '09:00'", "([01][0-9]|2[0-3]):[0-5][0-9]").then(_time)
DURATION_FORM = duration(most=DURATION_MAX, example="2d")
_DAYS = listed(choice(WEEKDAYS).then(WEEKDAYS.index, shown=WEEKDAYS.__getitem__), 1, 7)
_SCALAR = Form(
    (str, int, float, bool),
    "a text, a number or a switch",
    lambda part: part.value,
    {"type": ["string", "number", "boolean"]},
)
_VARIABLES = by_name(_SCALAR, NAME_FORM, most=JOURNEY_VARIABLES_MAX)


_WHEN = when(Conditions, own=(JOURNEY,))


def _condition(part: Part) -> Conditions:
    """A tree of conditions, or ``{sent: TEMPLATE}``, which is short for one."""
    if set(part.value) != {"sent"}:
        return _WHEN.make(part)
    template = part.inner("sent")
    path = (JOURNEYS, "sent", _TEMPLATE_NAME.read(template))
    template.whole.note_path(template.at, path[0], path[1:])
    return Conditions(Test(path, "exists", True))


_SENT = {
    "type": "object",
    "properties": {"sent": _TEMPLATE.schema},
    "required": ["sent"],
    "additionalProperties": False,
}
CONDITION_FORM = replace(_WHEN, make=_condition, schema={"anyOf": [_SENT, _WHEN.schema]})


def _read_steps(part: Part) -> tuple[Step, ...]:
    return _LISTED_STEPS.make(part)


_DEFS: dict[str, Any] = {}
STEPS_FORM: Form[tuple[Step, ...]] = Form(
    (list,), "a list of steps", _read_steps, {"$ref": "#/$defs/journey_steps"}, _DEFS
)
"""Steps hold steps, so that the form of one is made after it."""


_OF_RUN = re.compile(r"\$\{journey\.(key|variables\.[A-Za-z0-9_-]+)\}")
WHERE = replace(WHERE_FORM, make=partial(read_where, stands_for=_OF_RUN))
"""Conditions on an event, in which ``${journey.key}`` and ``${journey.variables.NAME}`` stand for those of the run."""


def is_bound(where: Where) -> bool:
    """Whether the key or a variable of a run stands in conditions."""
    return any(map(placeholders_in, where.parts))


def placeholders_in(node: Node) -> list[str]:
    """What stands for something of a run in a condition: ``key``, or ``variables.`` and a name."""
    operands = (operand for test in tests_of(node) for operand in _operands(test))
    matches = (_OF_RUN.fullmatch(operand) for operand in operands if isinstance(operand, str))
    return [match[1] for match in matches if match is not None]


def _operands(test: Test) -> tuple[Any, ...]:
    return test.operand if isinstance(test.operand, tuple) else (test.operand,)


def bound(where: Where, key: Any, variables: Mapping[str, Any]) -> Where:
    """The conditions of one run. What it does not have is no value of any event."""

    def value(operand: Any) -> Any:
        match = _OF_RUN.fullmatch(operand) if isinstance(operand, str) else None
        if match is None:
            return operand
        known = key if match[1] == "key" else variables.get(match[1].removeprefix("variables."))
        return operand if known is None else known

    def filled(test: Test) -> Test:
        made = tuple(map(value, _operands(test)))
        return replace(test, operand=made if isinstance(test.operand, tuple) else made[0])

    return Where(mapped(part, filled) for part in where.parts)


class On(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Events, of which one starts, ends or moves something."""

    one_of: ClassVar[tuple[str, ...]] = ("event", "segment", "segment_left")

    event: Annotated[tuple[str, ...], one_or_many(event_type(EVENT_TYPE_LENGTH_MAX), most=20)] = ()
    segment: Annotated[str, _SEGMENT, Meta(description="The segment that the person enters.")] = ""
    segment_left: Annotated[str, _SEGMENT, Meta(description="The segment that the person leaves.")] = ""
    where: Annotated[Where, WHERE, Meta(description="Conditions on the event.")] = EVERY_EVENT
    conditions: Annotated[
        Conditions | None, CONDITION_FORM, Meta(description="Conditions on the event and the person.")
    ] = msgspec.field(default=None, name="when")

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of the events."""
        if self.segment:
            return (SEGMENT_ENTERED,)
        return (SEGMENT_LEFT,) if self.segment_left else self.event

    @property
    def wanted_segment(self) -> str:
        """The segment that the event must be of; empty for other events."""
        return self.segment or self.segment_left

    def problems(self, written: Collection[str]) -> Problems:
        """Types that nobody sees; a trigger that asks for a run, which there is not yet."""
        if isinstance(self, Trigger) and is_bound(self.where):
            yield "where", "`where`: a trigger begins the run, so that nothing of a run can stand in it"
        for type in self.event:
            if type.startswith(SYSTEM_PREFIX):
                yield "event", f"`event`: {type!r} is Threadline's own, and no journey sees it"


class Trigger(On, frozen=True, kw_only=True, dict=True):
    """The events that let a person enter."""

    variables: Annotated[
        dict[str, tuple[str, ...]],
        by_name(FIELD_FORM, NAME_FORM, most=JOURNEY_VARIABLES_MAX),
        Meta(description="Variables of the journey, each with the field whose value it takes."),
    ] = msgspec.field(default_factory=dict, name="map")


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of a mail."""

    template: Annotated[str, _TEMPLATE]
    name: Annotated[str, NAME_FORM, Meta(description="How reports call it; without it the template's name.")] = ""
    subject: Annotated[str, text(most=500), Meta(description="In place of the template's own.")] = ""
    weight: Annotated[int, Meta(ge=1, le=1_000)] = 1


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """A mail."""

    one_of: ClassVar[tuple[str, ...]] = ("template", "variants")

    template: Annotated[str, _TEMPLATE] = ""
    variants: Annotated[
        tuple[Arm, ...], listed(struct(Arm), 2, 10), Meta(description="A person always gets the same one.")
    ] = ()
    subject: Annotated[str, text(most=500), Meta(description="In place of the template's own.")] = ""
    variables: Annotated[dict[str, Any], _VARIABLES, Meta(description="Further variables of the template.")] = (
        msgspec.field(default_factory=dict)
    )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The variants; one where it has none."""
        return self.variants or (Arm(template=self.template),)

    def problems(self, written: Collection[str]) -> Problems:
        """Variants that reports could not tell apart."""
        names = [arm.name or arm.template for arm in self.variants]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield "variants", f"`variants`: two are called {name!r}; give them a `name` of their own"


SEND_FORM = either(_TEMPLATE.then(lambda name: Send(template=name)), struct(Send))


class Wait(On, frozen=True, kw_only=True, dict=True):
    """A while, until a local time of day, or until an event."""

    one_of: ClassVar[tuple[str, ...]] = ()

    size: Annotated[int | None, DURATION_FORM, Meta(description="How long.")] = msgspec.field(default=None, name="for")
    until: Annotated[int | None, TIME_FORM, Meta(description="The next time of day in the recipient's zone.")] = None
    weekdays: Annotated[tuple[int, ...], _DAYS, Meta(description="Only on these days; goes with `until`.")] = ()
    timeout: Annotated[int | None, DURATION_FORM, Meta(description="How long to wait for the event.")] = None

    @property
    def is_for_event(self) -> bool:
        """Whether an event ends it."""
        return bool(self.types)

    def problems(self, written: Collection[str]) -> Problems:
        """What does not go together."""
        yield from On.problems(self, written)
        events = [name for name in On.one_of if name in written]
        times = [name for name in ("for", "until") if name in written]
        if len(events) > 1 or (events and times) or not (events or times):
            yield "", "`wait` takes `for`, `until` or both of them, or one of `event`, `segment` and `segment_left`"
        for name in ("where", "when", "timeout") if not events else ():
            if name in written:
                yield name, f"`{name}` goes with an event"
        if self.weekdays and self.until is None:
            yield "weekdays", "`weekdays` goes with `until`"


WAIT_FORM = either(DURATION_FORM.then(lambda size: Wait(size=size)), struct(Wait))


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One way of a choice."""

    conditions: Annotated[Conditions, CONDITION_FORM] = msgspec.field(name="when")
    steps: Annotated[tuple[Step, ...], STEPS_FORM]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step; whatever stands in it joins again at the step after it."""

    one_of: ClassVar[tuple[str, ...]] = ("send", *FORMS, "wait", "choice", "if", "steps", "exit")

    id: Annotated[str, NAME_FORM, Meta(description="Its name in events and reports; without it its position.")] = ""
    send: Annotated[Send | None, SEND_FORM] = None
    tag: Annotated[Action | None, FORMS["tag"], Meta(description="Gives the person a tag.")] = None
    untag: Annotated[Action | None, FORMS["untag"], Meta(description="Takes a tag from the person.")] = None
    trait: Annotated[
        Action | None, FORMS["trait"], Meta(description="Sets traits of the person, by name; null removes one.")
    ] = None
    fact: Annotated[Action | None, FORMS["fact"], Meta(description="Puts a fact into the person's memory.")] = None
    points: Annotated[Action | None, FORMS["points"], Meta(description="Gives the person points.")] = None
    webhook: Annotated[Action | None, FORMS["webhook"], Meta(description="Calls another system.")] = None
    start: Annotated[Action | None, FORMS["start"], Meta(description="Lets the person enter another journey.")] = None
    leave: Annotated[Action | None, FORMS["leave"], Meta(description="Takes the person out of another journey.")] = None
    wait: Annotated[Wait | None, WAIT_FORM] = None
    choice: Annotated[
        tuple[Branch, ...], listed(struct(Branch), 1, 20), Meta(description="The first that is true is taken.")
    ] = ()
    condition: Annotated[Conditions | None, CONDITION_FORM] = msgspec.field(default=None, name="if")
    steps: Annotated[tuple[Step, ...], STEPS_FORM, Meta(description="Steps in a sequence of their own.")] = ()
    exit: Annotated[str, text(most=100), Meta(description="Ends the journey, for this reason.")] = ""
    then: Annotated[tuple[Step, ...], STEPS_FORM, Meta(description="If the condition is true, or the event came.")] = ()
    otherwise: Annotated[
        tuple[Step, ...], STEPS_FORM, Meta(description="If it is not, the event did not come, or no branch is true.")
    ] = msgspec.field(default=(), name="else")

    def problems(self, written: Collection[str]) -> Problems:
        """Branches without anything to decide between them."""
        decides = self.condition is not None or (self.wait is not None and self.wait.is_for_event)
        if self.then and not decides:
            yield "then", "`then` goes with `if`, or with a `wait` for an event"
        if self.otherwise and not decides and not self.choice:
            yield "else", "`else` goes with `if`, `choice`, or a `wait` for an event"
        if self.otherwise and self.wait is not None and self.wait.is_for_event and not self.wait.timeout:
            yield "else", "the wait has no `timeout`, so that its `else` is never reached"

    @property
    def action(self) -> Action | None:
        """What it does besides sending a mail, if it does anything."""
        actions = (self.tag, self.untag, self.trait, self.fact, self.points, self.webhook, self.start, self.leave)
        return next((action for action in actions if action is not None), None)

    @property
    def inner(self) -> Iterator[tuple[Step, ...]]:
        """The sequences in it."""
        yield from (branch.steps for branch in self.choice)
        yield from (self.steps, self.then, self.otherwise)


_STEP = struct(Step)
_LISTED_STEPS: Form[tuple[Step, ...]] = listed(_STEP, 1, JOURNEY_STEPS_MAX)
_DEFS["journey_steps"] = {**_LISTED_STEPS.schema, "items": {"$ref": "#/$defs/journey_step"}}
_DEFS["journey_step"] = _STEP.schema
_DEFS.update(_STEP.defs)


def steps_of(steps: tuple[Step, ...]) -> Iterator[Step]:
    """All steps, in the order in which they are written."""
    for step in steps:
        yield step
        for inner in step.inner:
            yield from steps_of(inner)
