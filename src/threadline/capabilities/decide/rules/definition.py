"""What a rule and a set of rules are made of; both are values, and a version of a rule never changes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.acting import Acted, act
from threadline.capabilities.decide.rules.actions import ACTIONS, Action
from threadline.capabilities.decide.rules.body import Body, ConditionsBody
from threadline.capabilities.decide.rules.hashing import ENGINE
from threadline.capabilities.decide.rules.model_reading import MODEL
from threadline.capabilities.foundation.conditions.forms import when
from threadline.capabilities.foundation.definitions.declaring import (
    Given,
    Named,
    Problems,
    event_type,
    listed,
    name_of,
    parsed,
    struct,
)
from threadline.kernel.canonical import canonical_json, standard_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import (
    EVENT_TYPE_LENGTH_MAX,
    RULE_BYTES_MAX,
    RULE_DESCRIPTION_LENGTH_MAX,
    RULE_NAME_LENGTH_MAX,
    RULE_SETS_MAX,
    RULES_MAX,
)
from threadline.kernel.names import Names
from threadline.kernel.policy import Read
from threadline.kernel.time import format_time, parse_time

VERSION_MAX = 99_999_999
PRIORITY_MAX = 1_000_000
SET_EVENTS_MAX = 200
_TIMES = ["2026-03-01", "2026-03-01T12:00:00Z"]
_TIME = parsed(parse_time, f"a time, such as {_TIMES[1]}", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}", examples=_TIMES)


class Rule(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One version of a rule: what is asked of an event, and what is done."""

    one_of: ClassVar[tuple[str, ...]] = ("conditions", "model")

    id: Given
    version: Annotated[int, Meta(ge=1, le=VERSION_MAX)] = 1
    name: Annotated[str, Meta(min_length=0, max_length=RULE_NAME_LENGTH_MAX)] = ""
    description: Annotated[str, Meta(min_length=0, max_length=RULE_DESCRIPTION_LENGTH_MAX)] = ""
    priority: Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX, description="The highest is asked first.")] = 0
    conditions: Annotated[Body | None, when(ConditionsBody)] = None
    model: Annotated[Body | None, MODEL] = None
    actions: Annotated[tuple[Action, ...], ACTIONS] = ()
    effective_from: Annotated[int | None, _TIME] = None
    effective_until: Annotated[int | None, _TIME] = None
    place: Given = ""

    @cached_property
    def body(self) -> Body:
        """What is asked."""
        body = self.model if self.conditions is None else self.conditions
        assert body is not None
        return body

    def problems(self, written: Collection[str]) -> Problems:
        """What the whole cannot be."""
        since, until = self.effective_from, self.effective_until
        if since is not None and until is not None and since >= until:
            yield "effective_until", "`effective_until` is not after `effective_from`"
        try:
            size = len(self.canonical)
        except InvalidValue as error:
            yield "", str(error)
        else:
            if size > RULE_BYTES_MAX:
                yield "", f"the rule has {size:,} bytes; at most {RULE_BYTES_MAX:,} are allowed, split it in two"

    @cached_property
    def is_limited(self) -> bool:
        """Whether it counts at some times only."""
        return self.effective_from is not None or self.effective_until is not None

    def is_effective(self, at: int) -> bool:
        """Whether it counts at an instant, by its own word."""
        if self.effective_from is not None and at < self.effective_from:
            return False
        return self.effective_until is None or at < self.effective_until

    @cached_property
    def content(self) -> dict[str, Any]:
        """All that its author wrote, as JSON has it: reading that gives an equal rule."""
        content: dict[str, Any] = {
            "id": self.id,
            "version": self.version,
            "name": self.name,
            "description": self.description,
            "priority": self.priority,
            self.body.kind: self.body.plain,
            "actions": [action.plain for action in self.actions],
        }
        for name in ("effective_from", "effective_until"):
            at = getattr(self, name)
            if at is not None:
                content[name] = format_time(at)
        return content

    @cached_property
    def canonical(self) -> bytes:
        """The content as canonical JSON."""
        return canonical_json(self.content)

    @cached_property
    def standard(self) -> bytes:
        """The content as it is hashed."""
        return standard_json(self.content)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of that, hex."""
        return hashlib.sha256(self.standard).hexdigest()

    @cached_property
    def fixed(self) -> Acted | None:
        """What its actions come to, if that depends on nothing."""
        if any(action.holes for action in self.actions):
            return None
        return act(self.actions, {}, lambda path: None)

    @cached_property
    def hasher(self) -> Any:
        """The hash of a decision up to where what was read begins; to be copied."""
        return hashlib.sha256(b'{"content":%b,"engine":%d,"inputs":' % (self.standard, ENGINE))

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that it goes by."""
        paths = [*self.body.reads, *(read for action in self.actions for read in action.reads)]
        return tuple(Read(name, path, f"{self.place}: rule {self.id!r}") for name, path in dict.fromkeys(paths))


EXISTING = "Whether imported history is decided as well, and what changed definitions, a refresh or a merge reveal."


class RuleSet(msgspec.Struct, frozen=True, dict=True):
    """Which rules are asked of which events, in which order and how far."""

    name: Given
    events: Annotated[
        tuple[str, ...],
        listed(event_type(EVENT_TYPE_LENGTH_MAX), 1, SET_EVENTS_MAX),
        Meta(description="The event types on which its rules run.", examples=[["payment_received"]]),
    ]
    rules: Annotated[
        tuple[str, ...],
        listed(name_of("rule"), 1, RULES_MAX),
        Meta(
            description="Ids of rules, which run by priority, the highest first, then by id.", examples=[["risk-score"]]
        ),
    ]
    policy: Annotated[
        Literal["all", "first"],
        Meta(
            title="How far it runs",
            description="`all`: each rule that matches acts; `first`: no further than to the first that does.",
        ),
    ] = "all"
    record: Annotated[
        Literal["matched", "all"],
        Meta(
            title="Which decisions are kept",
            description="`matched`: those of rules that match; `all`: also those of rules that did not.",
        ),
    ] = "matched"
    existing: Annotated[bool, Meta(title="Decide imported history too", description=EXISTING)] = False
    historical: Annotated[bool, Meta(description="An older name of `existing`.")] = False
    description: Annotated[str, Meta(min_length=0, max_length=RULE_DESCRIPTION_LENGTH_MAX)] = ""
    place: Given = ""

    @property
    def takes_existing(self) -> bool:
        """Whether it also decides about what was so before, and is only noticed now."""
        return self.existing or self.historical

    def problems(self, written: Collection[str]) -> Problems:
        """What is wrong with single names."""
        for key, names in (("events", self.events), ("rules", self.rules)):
            for name in names:
                if names.count(name) > 1:
                    yield key, f"`{key}`: {name!r} is listed twice; keep one"
        for type in self.events:
            if type.startswith(SYSTEM_PREFIX):
                yield "events", f"`events`: {type!r} is Threadline's own, and no rule is asked of it"

    @cached_property
    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "events": list(self.events),
            "rules": list(self.rules),
            "policy": self.policy,
            "record": self.record,
            # Under the older name: a process of before that one reads it as well.
            "historical": self.takes_existing,
            "description": self.description,
        }


RULES = Named(
    "rules",
    "rule",
    struct(Rule),
    "Rules by id: what is asked of an event, and what is done.",
    "risk-score",
    most=RULES_MAX,
)
SETS = Named(
    "rule_sets",
    "rule set",
    struct(RuleSet),
    "Sets of rules by name: which are asked of which events.",
    "checkout",
    most=RULE_SETS_MAX,
)
RULES_SECTION, SETS_SECTION = RULES.declared, SETS.declared


def rule_of_json(id: str, value: Any, label: str = "rule", names: Names | None = None) -> Rule:
    """The rule of plain values, as JSON gives them.

    ``names``: those that it may name; without them any. Raises `InvalidDefinition` with every mistake, one a line, each
    with its place, such as ``rule.actions[0].tag``.
    """
    return RULES.read_json(id, value, label, names)


def set_of_json(name: str, value: Any, label: str = "rule_set") -> RuleSet:
    """The same for a set of rules."""
    return SETS.read_json(name, value, label)
