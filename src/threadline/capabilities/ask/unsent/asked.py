"""What is asked: about whom, and about which mails."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

from threadline.capabilities.ask.unsent.answer import About
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Person


class Wanted:
    """Which mails are asked about: all of the person, or those of one template, journey, broadcast or rule."""

    def __init__(self, *, template: str, journey: str, broadcast: str, rule: str) -> None:
        self.template = template
        self.journey = journey
        self.broadcast = broadcast
        self.rule = rule

    @property
    def is_all(self) -> bool:
        """Whether nothing is named."""
        return not (self.template or self.journey or self.broadcast or self.rule)

    def has(self, about: About) -> bool:
        """Whether a mail is one of them."""
        named = (
            (self.template, about.template),
            (self.journey, about.journey),
            (self.broadcast, about.broadcast),
            (self.rule, about.rule),
        )
        return all(wanted in ("", given) for wanted, given in named)


class Subject:
    """The person who is asked about, as of now."""

    def __init__(self, context: Context, person: Person) -> None:
        self.context = context
        self.engine = context.engine
        self.person = person
        self.now = context.now

    @cached_property
    def view(self) -> PersonView:
        """What is known of them."""
        return self.engine.reader.as_of(self.person, self.now)

    def view_at(self, recorded: Recorded) -> PersonView:
        """What was known of them right after one of their events."""
        at = max(recorded.known_at, recorded.event.occurred_at) + 1
        return self.engine.reader.as_of(self.person, at, known_at=recorded.known_at)

    def has_any(self, types: Iterable[str]) -> bool:
        """Whether they may have an event of these types; false: they surely have none."""
        activity = self.view.view("activity")
        return bool(activity["events_of_other_types"]) or not activity["events_by_type"].keys().isdisjoint(types)

    def last(self, types: Collection[str], **having: str) -> Recorded | None:
        """Their last event of these types that has these properties; None: there is none among the newest."""
        if not self.has_any(types):
            return None
        newest = self.engine.reader.all_events(
            self.person, types=frozenset(types), stop=self.now + 1, reverse=True, size=_AT_ONCE, counting=True
        )
        for _, recorded in zip(range(LOOKED_AT_MAX), newest, strict=False):
            given = recorded.event.properties
            if all(given.get(name) == value for name, value in having.items()):
                return recorded
        return None


_AT_ONCE = 20
"""Events that are read at a time where mostly the first is meant."""
LOOKED_AT_MAX = 1_000
"""Events of one person that are looked at for one question, the newest."""


def about(data: Any) -> About:
    """What the data of an effect, or the properties of its event, say that a mail is."""
    given = data if isinstance(data, dict) else {}
    return About(**{name: value for name in About.__struct_fields__ if isinstance(value := given.get(name), str)})


def of_operation(context: Context, name: str, params: Any) -> Any:
    """The answer of another capability's operation; None where that is not in force, or knows nothing of it."""
    named = next((operation for operation in context.engine.catalogue.operations if operation.name == name), None)
    try:
        return None if named is None else named.run(context, params)
    except NotFound:
        return None
