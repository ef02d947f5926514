"""Versions of rules that operations write: drafts, what was tested, what is active, and the log of all transitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from threadline.capabilities.decide.rules.active_rules import RULE, SET, SHADOWED, ActiveRules
from threadline.capabilities.decide.rules.definition import RULES, SETS, Rule, RuleSet, rule_of_json
from threadline.capabilities.decide.rules.lifecycle import State, refuse_shadow, refuse_transition
from threadline.capabilities.decide.rules.policy import POLICY
from threadline.kernel.documents import Documents, Numbered, Stored, changed
from threadline.kernel.errors import Conflict, InvalidDefinition, LimitExceeded, NotFound
from threadline.kernel.limits import PAGE_ITEMS_MAX, RULE_SETS_MAX, RULES_MAX
from threadline.kernel.names import hint
from threadline.kernel.operation import Context
from threadline.kernel.ports import Ports
from threadline.kernel.store import Delete, Key, Put, query_pages
from threadline.kernel.typed import prepared

HEAD = "rule_head"
"""Table: for each rule of a workspace what state each version is in."""
VERSION = "rule_version"
"""Table: the versions of each rule."""
LOG = "rule_log"
"""Table: every transition of each rule and of each set, in order; entries are only ever added."""

T = TypeVar("T")


@prepared
class Transition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a log."""

    at: int
    by: str
    to: str
    """A state of a version; of a set ``written`` or ``removed``."""
    version: int = 0
    note: str = ""
    content: dict[str, Any] = {}
    """Of a set: as it was written."""


@prepared
class Head(msgspec.Struct, kw_only=True):
    """What state each version of a rule is in."""

    states: list[State]
    """Of version 1, 2, 3 …"""
    entries: int = msgspec.field(name="turns", default=0)
    """Entries in the log."""
    name: str = ""
    """Of the newest version, for lists."""
    shadow: int = 0
    """The version that is asked beside the active one; 0 if there is none."""

    @property
    def active(self) -> int:
        """The active version; 0 if there is none."""
        return self.states.index("active") + 1 if "active" in self.states else 0


@prepared
class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A version as it was written."""

    content: dict[str, Any]
    hash: str
    at: int
    by: str


_HEADS, _VERSIONS, _LOG = Documents(HEAD, Head), Numbered(VERSION, Written), Numbered(LOG, Transition)


def active_rules_of(context: Context) -> ActiveRules:
    """The active rules of the workspace as the store has them now."""
    active: ActiveRules = context.engine.shared.fresh(context.workspace, POLICY)
    return active


def _names_of_rules(engine: Ports, workspace: str) -> Iterator[str]:
    yield from engine.definition_history.names(POLICY)
    for items in query_pages(engine.store, HEAD, workspace):
        yield items.key.sort


def _names_of_sets(engine: Ports, workspace: str) -> Iterator[str]:
    active: ActiveRules = engine.shared.fresh(workspace, POLICY)
    yield from active.sets


RULE_KIND = dataclasses.replace(RULES.kind, stored=_names_of_rules)
SET_KIND = dataclasses.replace(SETS.kind, stored=_names_of_sets)


def stored_head(context: Context, id: str) -> Stored[Head]:
    """The head of a rule; an empty one if nothing was ever written under this id."""
    return _HEADS.find(context.engine.store, context.workspace, id) or Stored(Head(states=[]), 0)


def existing(context: Context, id: str) -> Head:
    """The head of a rule that was written or declared; raises `NotFound`."""
    head, _ = stored_head(context, id)
    if not head.states and not context.engine.definition_history.transitions(POLICY, id):
        raise NotFound(f"there is no rule {id!r}; {hint(id, {*_names_of_rules(context.engine, context.workspace)})}")
    return head


def heads(context: Context, after: str, limit: int) -> list[tuple[str, Head]]:
    """A page of rules by id."""
    return _HEADS.page(context.engine.store, context.workspace, after, limit)


def written(context: Context, id: str, version: int) -> Written:
    """A version as it was written; raises `NotFound`."""
    known = _VERSIONS.find(context.engine.store, context.workspace, id, version)
    if known is None:
        raise NotFound(f"rule {id!r} has no version {version}")
    return known


def log(context: Context, id: str, after: int = 0, limit: int = PAGE_ITEMS_MAX) -> list[Transition]:
    """The transitions of a rule after the ``after``-th, oldest first."""
    return _LOG.after(context.engine.store, context.workspace, id, after, limit)


def all_transitions(context: Context, id: str) -> Iterator[Transition]:
    """The whole log of a rule, oldest first."""
    return _LOG.all(context.engine.store, context.workspace, id)


def compiled(content: dict[str, Any]) -> Rule:
    """The rule of a version's content."""
    content = dict(content)
    return rule_of_json(content.pop("id"), content)


# --- writing ----------------------------------------------------------------------------------


class _Change:
    """What one operation adds to a rule: log entries and other writes, in one commit."""

    def __init__(self, context: Context, id: str, head: Head, expected: int) -> None:
        self._context = context
        self._id = id
        self._expected = expected
        self.head = head
        self.writes: list[Put | Delete] = []

    def put(self, to: State, version: int, note: str) -> None:
        """Put a version into a state."""
        self.head.states[version - 1] = to
        self.note(to, version, note)

    def note(self, to: str, version: int, note: str) -> None:
        """Add an entry to the log."""
        self.head.entries += 1
        transition = Transition(
            at=self._context.engine.recorder.clock(), by=self._context.source, to=to, version=version, note=note
        )
        self.writes.append(_LOG.put(self._context.workspace, self._id, self.head.entries, transition))

    def commit(self) -> bool:
        """Whether it is durable; False: another process was faster."""
        head = _HEADS.put(self._context.workspace, self._id, self.head, self._expected)
        refusal = self._context.engine.shared.change(self._context.workspace, POLICY, [head, *self.writes])
        return refusal is None


def _changed(context: Context, id: str, change: Callable[[_Change], T]) -> T:
    """Change a rule; ``change`` is called again with what is so then when another process was faster."""
    if id in active_rules_of(context).declared:
        raise Conflict(f"rule {id!r} is declared in the definitions; change it there")

    def attempt() -> T | None:
        made = _Change(context, id, *stored_head(context, id))
        result = change(made)
        return result if not made.writes or made.commit() else None

    return changed(f"the rule {id!r}", attempt)


def write(context: Context, id: str, content: dict[str, Any], expected: int | None) -> tuple[int, Written, bool]:
    """A new version, as a draft: (its number, as it was written, whether it is new).

    What says the same as the newest version is that version. ``expected`` is the newest version that the caller knows.
    """
    if "version" in content:
        raise InvalidDefinition("rule.version: the version number is assigned when the rule is written; leave it out")

    def change(attempt: _Change) -> tuple[int, Written, bool]:
        newest = len(attempt.head.states)
        if newest:
            before = written(context, id, newest)
            same = _read(context, id, {**content, "version": newest})
            if same.hash == before.hash:
                return newest, before, False
        if expected is not None and expected != newest:
            raise Conflict(f"the newest version of rule {id!r} is {newest}, not {expected}; read it and decide again")
        rule = _read(context, id, {**content, "version": newest + 1})
        made = Written(content=rule.content, hash=rule.hash, at=context.engine.recorder.clock(), by=context.source)
        attempt.head.states.append("draft")
        attempt.head.name = rule.name
        attempt.writes.append(_VERSIONS.put(context.workspace, id, newest + 1, made))
        attempt.put("draft", newest + 1, "")
        return newest + 1, made, True

    return _changed(context, id, change)


def _read(context: Context, id: str, content: dict[str, Any]) -> Rule:
    rule = replace(rule_of_json(id, content, names=context.engine.catalogue.names), place="rule")
    context.engine.catalogue.refuse_unread(rule.reads)
    return rule


def move(
    context: Context,
    id: str,
    version: int,
    to: State,
    note: str,
    *,
    untested: bool = False,
    gate: Callable[[Head], None] = lambda head: None,
) -> Head:
    """Put a version into another state; what is in it already stays. At most one version is active.

    Raises `Conflict` where that cannot be, and for a draft that is to be active unless it may be ``untested``. ``gate``
    raises what speaks against it as things stand; if they change meanwhile it is asked again.
    """

    def change(attempt: _Change) -> Head:
        head = attempt.head
        if not 1 <= version <= len(head.states):
            raise NotFound(f"rule {id!r} has no version {version}")
        now = head.states[version - 1]
        if now == to:
            return head
        refuse_transition(id, version, now, to, untested=untested)
        gate(head)
        active = head.active
        if version == head.shadow:
            _unshadow(context, attempt, id, f"it is {to} now")
        if to == "active":
            _activate(context, attempt, id, version, active)
        elif active == version:
            attempt.writes.append(Delete(Key(POLICY, context.workspace, RULE + id)))
        attempt.put(to, version, note)
        return head

    return _changed(context, id, change)


def _activate(context: Context, attempt: _Change, id: str, version: int, active: int) -> None:
    if not active and len(active_rules_of(context).rules) >= RULES_MAX:
        raise LimitExceeded(f"{RULES_MAX:,} rules are active, which is the limit; retire some first")
    rule = compiled(written(context, id, version).content)
    if active:
        attempt.put("retired", active, f"version {version} takes its place")
    attempt.writes.append(Put(Key(POLICY, context.workspace, RULE + id), rule.canonical))


# --- shadows ----------------------------------------------------------------------------------


def shadow(context: Context, id: str, version: int, note: str) -> Head:
    """Have a version that was tested asked of live events beside the active one; 0: none any more."""

    def change(attempt: _Change) -> Head:
        head = attempt.head
        if version == head.shadow:
            return head
        if version and not 1 <= version <= len(head.states):
            raise NotFound(f"rule {id!r} has no version {version}")
        if version:
            refuse_shadow(id, version, head.states[version - 1])
        if head.shadow:
            _unshadow(context, attempt, id, note)
        if version:
            head.shadow = version
            rule = compiled(written(context, id, version).content)
            attempt.writes = [w for w in attempt.writes if w.key != _shadow_key(context, id)]
            attempt.writes.append(Put(_shadow_key(context, id), rule.canonical))
            attempt.note("shadow", version, note)
        return head

    return _changed(context, id, change)


def _unshadow(context: Context, attempt: _Change, id: str, note: str) -> None:
    attempt.writes.append(Delete(_shadow_key(context, id)))
    attempt.note("shadow ended", attempt.head.shadow, note)
    attempt.head.shadow = 0


def _shadow_key(context: Context, id: str) -> Key:
    return Key(POLICY, context.workspace, SHADOWED + id)


# --- sets -------------------------------------------------------------------------------------


def change_set(context: Context, name: str, rule_set: RuleSet | None) -> bool:
    """Write a set, or remove it; whether that changes anything."""
    active = active_rules_of(context)
    if name in active.declared_sets:
        raise Conflict(f"rule set {name!r} is declared in the definitions; change it there")

    def attempt() -> bool | None:
        key = Key(POLICY, context.workspace, SET + name)
        entries = _LOG.last_number(context.engine.store, context.workspace, SET + name)
        item = context.engine.store.get([key])[0]
        data = None if rule_set is None else msgspec.json.encode(rule_set.content)
        if (None if item is None else item.value) == data:
            return False
        if item is None and len(active.sets) >= RULE_SETS_MAX:
            raise LimitExceeded(f"there are {RULE_SETS_MAX} rule sets, which is the limit; remove some first")
        expected = 0 if item is None else item.version
        transition = Transition(
            at=context.engine.recorder.clock(),
            by=context.source,
            to="removed" if rule_set is None else "written",
            content={} if rule_set is None else rule_set.content,
        )
        writes: Sequence[Put | Delete] = (
            Delete(key, expected) if data is None else Put(key, data, expected),
            _LOG.put(context.workspace, SET + name, entries + 1, transition),
        )
        return True if context.engine.shared.change(context.workspace, POLICY, writes) is None else None

    return changed(f"the rule set {name!r}", attempt)
