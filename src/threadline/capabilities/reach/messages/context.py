"""What a template sees of the person, the event behind the message, and what is known, whatever the channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Protocol

from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.time import format_time


class Facts(Protocol):
    """Reads what a template asks for; each only if it does."""

    def event(self) -> Recorded | None:
        """The event behind the message; None if there is none."""
        ...


class Cause:
    """The event behind a message, read from the log if the template asks for it."""

    def __init__(self, ports: Ports, workspace: str, id: str) -> None:
        self._ports = ports
        self._workspace = workspace
        self._id = id

    def event(self) -> Recorded | None:
        """See `Facts`."""
        try:
            return self._ports.log.event(self._workspace, self._id) if self._id else None
        except NotFound:
            return None


def context_of(
    view: PersonView, read: Callable[[str], Set[str]], facts: Facts, given: Mapping[str, Any], **person: Any
) -> dict[str, Any]:
    """What is ``given``, and beside it the person with what the channel knows of them (``person``), the event, features
    and segments, each of these only if the template ``read``s below its name.

    Nulls are left out of that, so that a template fails instead of writing "None".
    """
    profile = view.view("profile") or {}
    context: dict[str, Any] = {
        **given,
        "person": {
            "id": view.person,
            **person,
            "traits": traits(view),
            "tags": profile.get("tags", []),
            "identifiers": identifiers(view),
        },
    }
    if read("event") and (recorded := facts.event()) is not None:
        context["event"] = _event(recorded)
    if features := read("features"):
        context["features"] = _features(view.view("features") or {}, features)
    if read("segments"):
        context["segments"] = sorted(view.view("segments") or {})
    return {name: _without_nulls(value) for name, value in context.items() if value is not None}


def address_in(view: PersonView, kind: str) -> str:
    """An address of a person: the trait of this name, else the identifier of that kind that was used last; empty if
    there is none."""
    trait = traits(view).get(kind)
    if isinstance(trait, str) and trait.strip():
        return trait.strip()
    return identifiers(view).get(kind, "")


def identifiers(view: PersonView) -> dict[str, str]:
    """By kind the identifier that was used last; of several at one instant the last by name."""
    known = sorted(view.identifiers)
    if len({identifier.kind for identifier in known}) < len(known):
        uses = view.view("identifiers") or {}
        known.sort(key=lambda identifier: str(uses.get(str(identifier), {}).get("last_used_at", "")))
    return {identifier.kind: identifier.value for identifier in known}


def traits(view: PersonView) -> dict[str, Any]:
    """The traits of a person."""
    return dict((view.view("profile") or {}).get("traits", {}))


def _event(recorded: Recorded) -> dict[str, Any]:
    event = recorded.event
    return {
        "id": recorded.id,
        "type": event.type,
        "occurred_at": format_time(event.occurred_at),
        "properties": event.properties,
    }


def _features(vector: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: shown["value"] for name, shown in vector.items() if name in names or "" in names}


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value if item is not None] if type(value) is list else value
