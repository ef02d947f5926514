"""Actions: what a rule that matched wants, each a wish that the engine grants in the commit that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from threadline.capabilities.decide.rules import events as rules
from threadline.capabilities.decide.rules.events import RULE_LOGGED
from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.foundation.conditions.fields import viewed
from threadline.capabilities.foundation.conditions.placeholders import OUTPUT, Fail, Look, Template, read_template
from threadline.capabilities.foundation.definitions import Noted, Part, Place
from threadline.capabilities.foundation.definitions.declaring import Form, listed
from threadline.capabilities.foundation.webhooks import events as webhooks
from threadline.capabilities.foundation.webhooks.definition import queue_of
from threadline.capabilities.profile.feature_updates import events as feature_updates
from threadline.capabilities.profile.leaderboards import events as leaderboards
from threadline.capabilities.profile.memory.events import FACT_COMPUTED
from threadline.capabilities.profile.people.events import IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.capabilities.profile.points import events as points
from threadline.capabilities.profile.points.events import AMOUNT_MAX, POINTS_EARNED
from threadline.capabilities.profile.segments import events as segments
from threadline.capabilities.profile.streaks import events as streaks
from threadline.capabilities.reach.alerts import events as alerts
from threadline.capabilities.reach.broadcasts import events as broadcasts
from threadline.capabilities.reach.consent import events as consent
from threadline.capabilities.reach.feedback import events as feedback
from threadline.capabilities.reach.journeys import events as journeys
from threadline.capabilities.reach.journeys.events import JOURNEY_ENTRY_REQUESTED, JOURNEY_EXIT_REQUESTED
from threadline.capabilities.reach.mail import events as mail
from threadline.capabilities.reach.mail.order import mail_effect
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import ACTIONS_MAX, EVENT_TYPE_LENGTH_MAX, FACT_KEY_LENGTH_MAX, IDENTIFIER_LENGTH_MAX
from threadline.kernel.names import EVENT_TYPE, PROPERTY, TAG
from threadline.kernel.policy import Effect, Emit, Wish
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import format_time

Params = dict[str, Any]

NOTIFICATION, WEBHOOK = "notification", "webhook"
"""Kinds of the effects."""

LEVELS = ("debug", "info", "warning", "error")

RESERVED = frozenset(
    type.name
    for room in (
        alerts,
        broadcasts,
        consent,
        feature_updates,
        feedback,
        journeys,
        leaderboards,
        mail,
        points,
        rules,
        segments,
        streaks,
        webhooks,
    )
    for type in room.EVENT_TYPES
    if type.speaker != "anyone"
)
"""Types that mean something only because Threadline itself says them; no rule may put them into a thread."""

Takes = Literal["text", "lines", "number", "object", "anything"]
"""``lines``: a text that may be longer than one line."""


class Param(NamedTuple):
    """What a parameter takes: ``check`` says what is wrong with a value, or nothing."""

    check: Callable[[Any], str]
    required: bool = False
    takes: Takes = "text"
    """What a form asks for; a placeholder may stand for it, which is a text."""
    choices: tuple[str, ...] = ()
    """The only texts that it may be; empty: any."""
    of: str = ""
    """What it is the name of: `EVENT_TYPE`, or the name of a `NameKind`; empty: no name."""


class Cause(NamedTuple):
    """What an action acts for."""

    rule: str
    version: int
    key: str
    """Unique among all that comes of one event."""
    at: int


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of action."""

    name: str
    does: str
    """What comes of it, in a sentence."""
    params: Mapping[str, Param]
    wish: Callable[[Params, Cause], Wish] | None
    """None: it shapes the decision itself."""
    emits: Callable[[Mapping[str, Template]], str] | None = None
    """The type of the event that it puts into the thread, by its parameters; None: it puts none there."""
    one_of: tuple[str, ...] = ()
    """Of these exactly one is given."""
    open: bool = False
    """Whether further parameters may be given."""

    @property
    def sends(self) -> bool:
        """Whether it goes out, and not into the thread."""
        return self.wish is not None and self.emits is None


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a rule, ready to be filled in."""

    kind: Kind
    params: Mapping[str, Template]

    @property
    def plain(self) -> dict[str, Params]:
        """As JSON has it."""
        return {self.kind.name: {name: template.plain for name, template in self.params.items()}}

    @property
    def holes(self) -> tuple[Path, ...]:
        """The paths of all placeholders."""
        return tuple(dict.fromkeys(path for template in self.params.values() for path in template.holes))

    @property
    def emits(self) -> str | None:
        """The type of the event that it puts into the thread; None: it puts none there."""
        return None if self.kind.emits is None else self.kind.emits(self.params)

    @property
    def makes(self) -> Iterator[tuple[str, str]]:
        """The names of free kinds that come of it, each with its `NameKind`."""
        if self.emits is not None:
            yield EVENT_TYPE, self.emits
        properties = self.params.get("properties")
        if self.kind.name == "emit_event" and properties is not None and type(properties.plain) is dict:
            yield from ((PROPERTY, name) for name in properties.plain)
        if self.kind.name == "tag" and not self.params[TAG].holes:
            yield TAG, self.params[TAG].plain

    @property
    def reads(self) -> tuple[tuple[str, Path], ...]:
        """The projections whose views placeholders reach into, and the steps inside each."""
        return tuple(view for path in self.holes if path[0] != OUTPUT and (view := viewed(path))[0])

    def filled(self, look: Look) -> Params:
        """The parameters with what placeholders find. Raises `InvalidValue` where the action can do nothing with it."""
        params = {name: template.fill(look) for name, template in self.params.items()}
        for name, param in self.kind.params.items():
            # A parameter that stands for others is needed where it is given.
            needed = param.required or name in self.kind.one_of
            if name not in params or (params[name] is None and not needed):
                continue
            problem = param.check(params[name])
            if problem:
                raise InvalidValue(f"{self.kind.name}: `{name}` {problem}")
        return params


# --- what parameters take -------------------------------------------------------------------


def _text(most: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        fits = type(value) is str and 0 < len(value) <= most
        return "" if fits else f"takes a text of 1 to {most} characters"

    return check


def _name(value: Any) -> str:
    fits = type(value) is str and 0 < len(value.encode()) <= IDENTIFIER_LENGTH_MAX
    return "" if fits else f"takes a text of 1 to {IDENTIFIER_LENGTH_MAX} bytes"


def _points(value: Any) -> str:
    return "" if type(value) is int and 0 < value <= AMOUNT_MAX else f"takes a whole number of 1 to {AMOUNT_MAX:,}"


def _object(value: Any) -> str:
    return "" if type(value) is dict else "takes an object, `key: value`"


def _anything(value: Any) -> str:
    return ""


def _level(value: Any) -> str:
    return "" if value in LEVELS else f"is one of {', '.join(LEVELS)}"


def _event_type(value: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= EVENT_TYPE_LENGTH_MAX:
        return f"takes an event type of 1 to {EVENT_TYPE_LENGTH_MAX} characters"
    if value.startswith(SYSTEM_PREFIX) or value in RESERVED:
        return f"cannot be {value!r}, which only Threadline itself tells"
    return ""


def _url(value: Any) -> str:
    fits = type(value) is str and value.startswith(("https://", "http://")) and len(value) <= 2_000
    return "" if fits else "takes an address that begins with https:// or http://"


# --- what becomes of them --------------------------------------------------------------------


def _emit(type: str, cause: Cause, properties: Params) -> Emit:
    return Emit(type=type, key=cause.key, occurred_at=cause.at, properties=properties)


def _by(cause: Cause) -> Params:
    return {"rule": cause.rule, "version": cause.version}


def _set_value(params: Params, cause: Cause) -> Wish:
    if "trait" in params:
        return _emit(IDENTIFY, cause, {params["trait"]: params["value"]})
    fact = {"type": params["fact"], "key": params.get("key") or params["fact"], "value": params["value"]}
    return _emit(FACT_COMPUTED, cause, fact)


def _emit_event(params: Params, cause: Cause) -> Wish:
    return _emit(params["type"], cause, params.get("properties") or {})


def _award(params: Params, cause: Cause) -> Wish:
    reason = params.get("reason") or f"rule {cause.rule}, version {cause.version}"
    return _emit(POINTS_EARNED, cause, {"points": params["points"], "reason": reason})


def _notify(params: Params, cause: Cause) -> Wish:
    if "template" in params:
        return mail_effect(cause.key, params["template"], params.get("variables") or {}, "", rule=cause.rule)
    return Effect(kind=NOTIFICATION, key=cause.key, data={**_by(cause), **params})


def _call(params: Params, cause: Cause) -> Wish:
    data = {**_by(cause), "at": format_time(cause.at), **params}
    return Effect(kind=WEBHOOK, key=cause.key, data=data, queue=queue_of(params))


_REASON = Param(_text(500))
_PROPERTIES = Param(_object, takes="object")
_JOURNEY = Param(_text(100), True, of="journey")

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "store_decision",
            "Says what was decided, and why. Further fields become a part of the decision.",
            {"result": Param(_text(100), True), "reason": Param(_text(1_000))},
            None,
            open=True,
        ),
        Kind(
            "set_value",
            "Sets a trait of the person, or a fact in their memory.",
            {
                "trait": Param(_name),
                "fact": Param(_text(100)),
                "key": Param(_text(FACT_KEY_LENGTH_MAX)),
                "value": Param(_anything, True, "anything"),
            },
            _set_value,
            lambda params: IDENTIFY if "trait" in params else FACT_COMPUTED,
            one_of=("trait", "fact"),
        ),
        Kind(
            "emit_event",
            "Adds a further event of the person, on which other rules may run.",
            {"type": Param(_event_type, True, of=EVENT_TYPE), "properties": _PROPERTIES},
            _emit_event,
            lambda params: str(params["type"].plain),
        ),
        Kind(
            "award_points",
            "Gives the person points.",
            {"points": Param(_points, True, "number"), "reason": _REASON},
            _award,
            lambda params: POINTS_EARNED,
        ),
        Kind(
            "tag",
            "Gives the person a tag.",
            {"tag": Param(_name, True, of=TAG)},
            lambda params, cause: _emit(TAG_ADDED, cause, dict(params)),
            lambda params: TAG_ADDED,
        ),
        Kind(
            "untag",
            "Takes a tag from the person.",
            {"tag": Param(_name, True, of=TAG)},
            lambda params, cause: _emit(TAG_REMOVED, cause, dict(params)),
            lambda params: TAG_REMOVED,
        ),
        Kind(
            "enter_journey",
            "Lets the person enter a journey, with the properties as its variables.",
            {"journey": _JOURNEY, "properties": _PROPERTIES},
            lambda params, cause: _emit(JOURNEY_ENTRY_REQUESTED, cause, {**_by(cause), **params}),
            lambda params: JOURNEY_ENTRY_REQUESTED,
        ),
        Kind(
            "exit_journey",
            "Takes the person out of a journey.",
            {"journey": _JOURNEY, "reason": Param(_text(100))},
            lambda params, cause: _emit(JOURNEY_EXIT_REQUESTED, cause, {**_by(cause), **params}),
            lambda params: JOURNEY_EXIT_REQUESTED,
        ),
        Kind(
            "send_notification",
            "Sends the person a mail by a template, or prints a message where the server runs.",
            {
                "message": Param(_text(10_000), takes="lines"),
                "template": Param(_text(64), of="template"),
                "variables": _PROPERTIES,
                "title": Param(_text(500)),
                "channel": Param(_text(100)),
                "data": _PROPERTIES,
            },
            _notify,
            one_of=("message", "template"),
        ),
        Kind(
            "call_webhook",
            "Calls another system.",
            {
                "destination": Param(_text(100), of="destination"),
                "url": Param(_url),
                "payload": Param(_anything, takes="anything"),
            },
            _call,
            one_of=("destination", "url"),
        ),
        Kind(
            "log_event",
            "Notes a message in the person's events.",
            {
                "message": Param(_text(1_000), True, "lines"),
                "level": Param(_level, choices=LEVELS),
                "data": _PROPERTIES,
            },
            lambda params, cause: _emit(RULE_LOGGED, cause, {**_by(cause), "level": "info", **params}),
            lambda params: RULE_LOGGED,
        ),
    )
}
"""By name."""


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


SYNONYMS = {_pascal(name): name for name in KINDS}
"""The same names as other systems write them."""


def read_action(value: Any, at: Place, fail: Fail) -> Action | None:
    """The action of a plain value, such as ``{tag: {tag: vip}}``; None for a mistake, which is passed to ``fail``."""
    if type(value) is not dict or len(value) != 1:
        fail(at, "an action is a mapping with one key, such as {tag: {tag: vip}}")
        return None
    (written, given), *_ = value.items()
    kind = KINDS.get(SYNONYMS.get(written, written)) if type(written) is str else None
    if kind is None:
        fail((*at, written), f"unknown action {written!r}; {suggestion(str(written), KINDS)}")
        return None
    inside = (*at, written)
    if type(given) is not dict:
        fail(inside, f"`{kind.name}` takes parameters, such as {{{next(iter(kind.params))}: …}}")
        return None
    wrong = _wrong_names(kind, given)
    for name, text in wrong:
        fail((*inside, name) if name in given else inside, text)
    params = {name: read_template(item, (*inside, name), fail) for name, item in given.items()}
    for name, template in params.items():
        param = kind.params.get(name)
        problem = param.check(template.plain) if param is not None and not template.holes else ""
        if problem:
            fail((*inside, name), f"`{name}` {problem}")
    return None if wrong else Action(kind, params)


def _wrong_names(kind: Kind, given: Params) -> list[tuple[str, str]]:
    problems = [
        (name, f"`{kind.name}`: unknown parameter {name!r}; {suggestion(name, kind.params)}")
        for name in given
        if name not in kind.params and not kind.open
    ]
    problems += [
        (name, f"`{kind.name}` needs `{name}`")
        for name, param in kind.params.items()
        if param.required and name not in given
    ]
    if kind.one_of and sum(name in given for name in kind.one_of) != 1:
        problems.append(("", f"`{kind.name}` takes either {' or '.join(f'`{name}`' for name in kind.one_of)}"))
    return problems


def _read_actions(part: Part) -> tuple[Action, ...]:
    _LISTED.make(part)
    note = part.noting()
    actions = [read_action(item, (index,), note) for index, item in enumerate(part.value)]
    for index, action in enumerate(actions):
        if action is not None:
            _note_names(part.inner(index), action)
    stored = [index for index, action in enumerate(actions) if action is not None and action.kind.wish is None]
    if len(stored) > 1:
        note((stored[1],), "a rule stores one decision; put further parameters into the first")
    if note.noted:
        raise Noted
    return tuple(action for action in actions if action is not None)


def _note_names(part: Part, action: Action) -> None:
    """Note the names in an action, those of placeholders apart, which only an event fills in."""
    for name, template in action.params.items():
        kind = action.kind.params[name].of if name in action.kind.params else ""
        if not kind or template.holes:
            continue
        at = (*part.at, *part.value, name)
        if action.kind.name == "untag":
            part.whole.note_free(at, kind, template.plain)
        elif kind not in (EVENT_TYPE, TAG):  # those it makes
            part.whole.note_name(at, kind, template.plain)


def _schema_of(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {} for name in kind.params},
        "required": [name for name, param in kind.params.items() if param.required],
        "additionalProperties": kind.open,
    }
    if kind.one_of:
        schema["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return schema


_ONE = {
    "type": "object",
    "properties": {name: _schema_of(KINDS[SYNONYMS.get(name, name)]) for name in (*KINDS, *SYNONYMS)},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_MAPPING = "a mapping with one key, such as {tag: {tag: vip}}"
_LISTED = listed(Form((dict,), _MAPPING, lambda part: part.value, _ONE), most=ACTIONS_MAX)
ACTIONS = replace(_LISTED, make=_read_actions)
"""The actions of a rule, as they are written."""
