"""What a rule and a set of rules are made of; both are values, and a version of a rule never changes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from threadline.capabilities.rules.acting import Acted, act
from threadline.capabilities.rules.actions import Action
from threadline.capabilities.rules.body import Body
from threadline.capabilities.rules.hashing import ENGINE
from threadline.kernel.canonical import canonical_json
from threadline.kernel.policy import Read
from threadline.kernel.time import format_time

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Names of rules and of sets. They become parts of keys and paths: no dots, no slashes."""

VERSION_MAX = 99_999_999


@dataclass(frozen=True)
class Rule:
    """One version of a rule."""

    id: str
    version: int
    body: Body
    name: str = ""
    description: str = ""
    priority: int = 0
    actions: tuple[Action, ...] = ()
    effective_from: int | None = None
    effective_until: int | None = None
    place: str = field(default="", compare=False)
    """File and line of the declaration, for messages."""

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
        found: dict[str, Any] = {
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
                found[name] = format_time(at)
        return found

    @cached_property
    def canonical(self) -> bytes:
        """The content as canonical JSON."""
        return canonical_json(self.content)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the content as canonical JSON, hex."""
        return hashlib.sha256(self.canonical).hexdigest()

    @cached_property
    def fixed(self) -> Acted | None:
        """What its actions come to, if that depends on nothing."""
        if any(action.holes for action in self.actions):
            return None
        return act(self.actions, {}, lambda path: None)

    @cached_property
    def hasher(self) -> Any:
        """The hash of a decision up to where what was read begins; to be copied."""
        return hashlib.sha256(b'{"content":%b,"engine":%d,"inputs":' % (self.canonical, ENGINE))

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that it goes by."""
        paths = [*self.body.reads, *(read for action in self.actions for read in action.reads)]
        return tuple(Read(name, path, f"{self.place}: rule {self.id!r}") for name, path in dict.fromkeys(paths))


@dataclass(frozen=True)
class RuleSet:
    """Which rules are asked of which events, in which order and how far."""

    name: str
    events: tuple[str, ...]
    rules: tuple[str, ...]
    """Ids. They are asked by priority, the highest first, then by id."""
    policy: Literal["all", "first"] = "all"
    """``first``: no further than to the first that matches."""
    record: Literal["matched", "all"] = "matched"
    """``all``: a decision also for each rule that was asked and did not match."""
    historical: bool = False
    """Whether back-filled history is decided as well."""
    description: str = ""
    place: str = field(default="", compare=False)

    @cached_property
    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "events": list(self.events),
            "rules": list(self.rules),
            "policy": self.policy,
            "record": self.record,
            "historical": self.historical,
            "description": self.description,
        }
