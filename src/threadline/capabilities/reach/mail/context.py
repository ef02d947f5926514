"""What a template sees: the person, the event behind the mail, variables, and links."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Protocol

from threadline.capabilities.reach.mail.definition import Sender
from threadline.capabilities.reach.mail.rendering import Compiled
from threadline.kernel.event import Recorded
from threadline.kernel.person_view import PersonView
from threadline.kernel.time import format_time

EMAIL = "email"
"""The trait, and the kind of identifier, that holds an address."""


class Facts(Protocol):
    """Reads what a template asks for; each only if it does."""

    def event(self) -> Recorded | None:
        """The event behind the mail; None if there is none."""
        ...


def address_in(view: PersonView) -> str:
    """The address of a person: the trait `email`, else the identifier of that kind that was used last; empty if there
    is none."""
    trait = _traits(view).get(EMAIL)
    if isinstance(trait, str) and trait.strip():
        return trait.strip()
    return _identifiers(view).get(EMAIL, "")


def context_of(
    compiled: Compiled, view: PersonView, facts: Facts, sender: Sender, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The context: nulls are left out of it, so that a template fails instead of writing "None".

    ``values``: variables, and `topic`, `message_id`, `unsubscribe_url` and the like as far as there are any.
    """
    profile = view.view("profile") or {}
    defaults = {name: variable.default for name, variable in compiled.template.variables.items()}
    context: dict[str, Any] = {
        **defaults,
        **values,
        "template": compiled.template.name,
        "sender": {"name": sender.display_name, "address": sender.address},
        "person": {
            "id": view.person,
            "email": address_in(view),
            "traits": _traits(view),
            "tags": profile.get("tags", []),
            "identifiers": _identifiers(view),
        },
    }
    if compiled.read_below("event") and (recorded := facts.event()) is not None:
        context["event"] = _event(recorded)
    if features := compiled.read_below("features"):
        context["features"] = _features(view.view("features") or {}, features)
    if compiled.read_below("segments"):
        context["segments"] = sorted(view.view("segments") or {})
    return {name: _without_nulls(value) for name, value in context.items() if value is not None}


def sample_of(compiled: Compiled, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of variables in a preview: what is given, else the example."""
    examples = {
        name: variable.example for name, variable in compiled.template.variables.items() if variable.example is not None
    }
    return examples | dict(given)


def _identifiers(view: PersonView) -> dict[str, str]:
    """By kind the identifier that was used last; of several at one instant the last by name."""
    known = sorted(view.identifiers)
    if len({identifier.kind for identifier in known}) < len(known):
        uses = view.view("identifiers") or {}
        known.sort(key=lambda identifier: str(uses.get(str(identifier), {}).get("last_used_at", "")))
    return {identifier.kind: identifier.value for identifier in known}


def _traits(view: PersonView) -> dict[str, Any]:
    return dict((view.view("profile") or {}).get("traits", {}))


def _event(recorded: Recorded) -> dict[str, Any]:
    event = recorded.event
    return {
        "id": recorded.id, "type": event.type, "occurred_at": format_time(event.occurred_at),
        "properties": event.properties,
    }  # fmt: skip


def _features(vector: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: shown["value"] for name, shown in vector.items() if name in names or "" in names}


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value if item is not None] if type(value) is list else value
