"""What a step may do besides sending a mail: tags, traits, facts and points of the person, a webhook, another journey.

Each is one wish of the policy, committed with the event that says the step is done. Values may be placeholders, such as
``${event.properties.total}`` or ``${journey.variables.order}``; they are filled in when the step is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions.fields import viewed
from threadline.capabilities.foundation.conditions.placeholders import Look, Template, read_template
from threadline.capabilities.foundation.definitions import Noted, Part
from threadline.capabilities.foundation.definitions.declaring import (
    NAMES,
    Form,
    by_name,
    described,
    either,
    name_of,
    struct,
    text,
)
from threadline.capabilities.profile.points.events import AMOUNT_MAX
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import (
    FACT_KEY_LENGTH_MAX,
    IDENTIFIER_LENGTH_MAX,
    JOURNEY_ACTION_BYTES_MAX,
    JOURNEY_VARIABLES_MAX,
)
from threadline.kernel.names import TAG

JOURNEY = "journey"
"""The first step of a field of the journey itself, such as ``journey.variables.order``."""
_TRAITS_MAX = 20
_ANY: tuple[type, ...] = (str, int, float, bool, list, dict, NoneType)


def _filled(
    wanted: str, kinds: tuple[type, ...], fits: Callable[[Any], bool], schema: dict[str, Any]
) -> Form[Template]:
    """A value that may have placeholders in it; ``fits``: whether one that is filled in can be used."""

    def make(part: Part) -> Template:
        note = part.noting()
        template = read_template(part.value, (), note)
        if note.noted:
            raise Noted
        if not template.holes and not fits(template.plain):
            raise InvalidValue(f"must be {wanted}")
        for projection, path in map(viewed, template.holes):
            if projection not in ("", JOURNEY):
                part.whole.note_path(part.at, projection, path)
        return template

    return Form(kinds, wanted, make, schema, shown=lambda template: template.plain)


def _is_tag(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value.encode("utf-8", "replace")) <= IDENTIFIER_LENGTH_MAX


def _is_amount(value: object) -> bool:
    return isinstance(value, int) and value is not True and 1 <= value <= AMOUNT_MAX


def _is_usable(value: object) -> bool:
    return True


_TAG = _filled(f"a text of 1 to {IDENTIFIER_LENGTH_MAX} bytes", (str,), _is_tag, {"type": "string", "minLength": 1})
_AMOUNT = _filled(
    f"a whole number from 1 to {AMOUNT_MAX:,}",
    (int, str),
    _is_amount,
    {"type": ["integer", "string"], "minimum": 1, "maximum": AMOUNT_MAX},
)
_VALUE = _filled("a value", _ANY, _is_usable, {})
_PAYLOAD = _filled("an object, `key: value`", (dict,), _is_usable, {"type": "object"})


def _left_tag(part: Part) -> Template:
    template = _TAG.make(part)
    if not template.holes:
        part.whole.note_free(part.at, TAG, template.plain)
    return template


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What a step does, ready to be filled in."""

    kind: str
    """The key of the step: ``tag``, ``untag``, ``trait``, ``fact``, ``points``, ``webhook``, ``start`` or ``leave``."""
    params: dict[str, Template]
    journey: str = ""
    """The other journey that it starts or leaves."""
    words: str
    """What it does, in words."""

    @property
    def holes(self) -> tuple[tuple[str, ...], ...]:
        """The paths of its placeholders."""
        return tuple(dict.fromkeys(path for template in self.params.values() for path in template.holes))

    @property
    def asks_person(self) -> bool:
        """Whether placeholders read what is known of the person, which an action before it may have changed."""
        return any(viewed(path)[0] not in ("", JOURNEY) for path in self.holes)

    def filled(self, look: Look) -> dict[str, Any]:
        """What it is given. Raises `InvalidValue` where it can do nothing with what placeholders find."""
        made = {name: template.fill(look) for name, template in self.params.items()}
        check = _CHECKS.get(self.kind)
        if check is not None and not check[1](made[check[0]]):
            raise InvalidValue(f"`{check[0]}` cannot be {str(made[check[0]])[:80]!r}")
        if len(canonical_json(made)) > JOURNEY_ACTION_BYTES_MAX:
            raise InvalidValue(f"it takes more than {JOURNEY_ACTION_BYTES_MAX:,} bytes")
        return made


_CHECKS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "tag": ("tag", _is_tag),
    "untag": ("tag", _is_tag),
    "points": ("points", _is_amount),
}
"""Kind -> what of it must fit once it is filled in."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact in the person's memory."""

    type: Annotated[str, text(most=100), Meta(description="The type of the fact, such as `preference`.")]
    key: Annotated[
        str, text(most=FACT_KEY_LENGTH_MAX), Meta(description="Among the facts of its type; without it the type.")
    ] = ""
    value: Annotated[Template, _VALUE]


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """Points for the person."""

    points: Annotated[Template, _AMOUNT, Meta(description="How many: a number, or a placeholder.")]
    reason: Annotated[str, text(most=500), Meta(description="Why; without it the journey.")] = ""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook."""

    destination: Annotated[str, name_of("destination")]
    payload: Annotated[Template | None, _PAYLOAD, Meta(description="What is sent.")] = None


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Another journey that the person enters."""

    journey: Annotated[str, name_of("journey")]
    variables: Annotated[
        dict[str, Template], by_name(_VALUE, most=JOURNEY_VARIABLES_MAX), Meta(description="Its variables.")
    ] = msgspec.field(default_factory=dict)


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """Another journey that the person leaves."""

    journey: Annotated[str, name_of("journey")]
    reason: Annotated[str, text(most=100), Meta(description="Why; kept in the event.")] = ""


def _plain(value: Any) -> Template:
    return Template(value, lambda look: value, ())


def _shown(value: Template) -> str:
    return str(value.plain).replace("_", " ") if isinstance(value.plain, str | int | float) else "a value"


def _tagged(tag: Template) -> Action:
    return Action(kind="tag", params={"tag": tag}, words=f"tag {_shown(tag)}")


def _untagged(tag: Template) -> Action:
    return Action(kind="untag", params={"tag": tag}, words=f"remove the tag {_shown(tag)}")


def _traits(traits: dict[str, Template]) -> Action:
    words = " and ".join(f"{name.replace('_', ' ')} to {_shown(value)}" for name, value in traits.items())
    return Action(kind="trait", params=traits, words=f"set {words}")


def _fact(fact: Fact) -> Action:
    key = fact.key or fact.type
    params = {"type": _plain(fact.type), "key": _plain(key), "value": fact.value}
    return Action(kind="fact", params=params, words=f"remember {key.replace('_', ' ')}: {_shown(fact.value)}")


def _points(given: Points) -> Action:
    params = {"points": given.points} | ({"reason": _plain(given.reason)} if given.reason else {})
    return Action(kind="points", params=params, words=f"give {_shown(given.points)} points")


def _call(call: Call) -> Action:
    params = {"destination": _plain(call.destination)} | ({"payload": call.payload} if call.payload else {})
    return Action(kind="webhook", params=params, words=f"call {call.destination.replace('_', ' ')}")


def _start(start: Start) -> Action:
    words = f"start {start.journey.replace('_', ' ')}"
    return Action(kind="start", params=start.variables, journey=start.journey, words=words)


def _leave(leave: Leave) -> Action:
    params = {"reason": _plain(leave.reason)} if leave.reason else {}
    return Action(kind="leave", params=params, journey=leave.journey, words=f"leave {leave.journey.replace('_', ' ')}")


_A_JOURNEY = name_of("journey")
FORMS: dict[str, Form[Action]] = {
    "tag": described(_TAG, **{NAMES: TAG}).then(_tagged),
    "untag": described(replace(_TAG, make=_left_tag), **{NAMES: TAG}).then(_untagged),
    "trait": by_name(_VALUE, text(most=100), 1, _TRAITS_MAX).then(_traits),
    "fact": struct(Fact).then(_fact),
    "points": either(_AMOUNT.then(lambda number: Points(points=number)), struct(Points)).then(_points),
    "webhook": either(name_of("destination").then(lambda name: Call(destination=name)), struct(Call)).then(_call),
    "start": either(_A_JOURNEY.then(lambda name: Start(journey=name)), struct(Start)).then(_start),
    "leave": either(_A_JOURNEY.then(lambda name: Leave(journey=name)), struct(Leave)).then(_leave),
}
"""Kind of action -> how it is written."""
