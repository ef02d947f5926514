"""One person: profile, identifiers, timers and the newest events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import (
    EventView,
    Instant,
    PersonRef,
    event_view,
    instant,
    write_cursor,
)
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import AsOf, Next
from threadline.capabilities.profile.features.operations.vector import FeatureView, feature_views
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.profile.people.tags import present
from threadline.kernel.calendar import zone_of_person
from threadline.kernel.disclosure import FREE, IDENTIFIER_VALUE, NOT_PERSONAL, PERSONAL, free
from threadline.kernel.event import thread_id
from threadline.kernel.key_fields import summary_fields
from threadline.kernel.limits import FUTURE_MAX_SECONDS
from threadline.kernel.operation import Context, operation
from threadline.kernel.ports import Person, Ports
from threadline.kernel.time import SECOND


class PersonParams(AsOf, kw_only=True):
    """Whom to show, and at which instant."""

    id: PersonRef
    timeline: Annotated[int, Meta(description="How many of the newest events to show.", ge=0, le=100)] = 20
    sources: Annotated[bool, Meta(description="Also show which event each trait, tag and group comes from.")] = False


class ValueSource(msgspec.Struct, kw_only=True):
    """Where a value of the profile comes from."""

    event: Annotated[str, Meta(description="The id of the newest event that says so.")]
    occurred_at: Instant


class IdentifierUse(msgspec.Struct, kw_only=True):
    """An identifier and when it was in use."""

    kind: str
    value: Annotated[str, IDENTIFIER_VALUE]
    linked: Annotated[
        bool, Meta(description="False: it came with events but does not name this person, e.g. one set aside.")
    ]
    first_used_at: Instant | None = None
    last_used_at: Instant | None = None


class TimerView(msgspec.Struct, kw_only=True):
    """Something that will happen by time alone."""

    policy: str
    key: str
    due_at: Instant


class Timeline(msgspec.Struct, kw_only=True):
    """The newest events, newest first; ``next`` is a cursor for the operation `events`."""

    events: list[EventView]
    next: Next = ""


@summary_fields("id", "name", "identifiers", "traits", "tags", "groups", "timezone", "timeline")
class PersonView(msgspec.Struct, kw_only=True):
    """Everything known of a person, all of it at one position."""

    id: str
    workspace: str
    position: Annotated[
        int,
        Meta(
            description="How many events were ever recorded of the person, erased ones too. Everything here is true at "
            "this position."
        ),
    ]
    as_of: Annotated[
        Instant | None,
        Meta(description="The instant that was asked for; null for the present."),
    ] = None
    created_at: Instant
    lead_id: Annotated[
        str,
        Meta(description="The same in every workspace, from identifiers of kinds declared shared; empty without one."),
        NOT_PERSONAL,
    ] = ""
    name: Annotated[
        str, Meta(description="What to call them, by their traits; empty where these do not say."), PERSONAL
    ] = ""
    identifiers: list[IdentifierUse]
    traits: Annotated[dict[str, Any], free(type=IDENTIFY)]
    tags: list[str]
    groups: Annotated[dict[str, Any], Meta(description="Group id -> the group's traits."), FREE]
    activity: Annotated[dict[str, Any], FREE]
    features: dict[str, FeatureView]
    timers: list[TimerView]
    timeline: Timeline
    views: Annotated[dict[str, Any], Meta(description="What further projections say, by their names."), FREE]
    sources: Annotated[
        dict[str, ValueSource],
        Meta(description="By traits.NAME, tags.TAG and groups.ID, where they were asked for."),
    ] = {}
    damaged_events: Annotated[
        list[str],
        Meta(description="Ids of events that are known to be damaged and are left out of the timeline; see `repair`."),
        NOT_PERSONAL,
    ] = []
    timezone: Annotated[
        str,
        Meta(
            description="The zone of their trait `timezone`, by the name that it goes by; empty: they have none that "
            "can be read, and what is sent goes by the zone of the definitions."
        ),
    ] = ""


_SHOWN_APART = frozenset({"profile", "identifiers", "activity", "features"})


@operation("GET /v1/people/{id}", example=PersonParams(id="user_id:42"))
def person(context: Context, params: PersonParams) -> PersonView:
    """Show everything known about a person."""
    engine = context.engine
    # One item holds the states, the heads and the timers, and the timeline ends at those heads: one position.
    asked = person_as_of(context, params.id, params.as_of)
    person, as_of, views = asked.person, asked.as_of, asked.views()
    newest = _newest(engine, person, params.timeline, as_of) if params.timeline else []
    profile = views.get("profile", {"traits": {}, "tags": [], "groups": {}})
    uses = views.get("identifiers", {})
    own = list(person.identifiers.values())
    if asked.past is not None and as_of is not None and any(str(identifier) not in uses for identifier in own):
        # What was linked later was nobody's then.
        own = asked.past.linked(person, as_of)
    return PersonView(
        id=person.id,
        workspace=person.workspace,
        position=person.position,
        as_of=None if as_of is None else asked.shown_at,
        created_at=instant(person.created_at),
        lead_id=lead_id(engine.catalogue.rules, own),
        name=name_in(profile["traits"]),
        identifiers=identifier_uses(engine.catalogue.rules, own, uses),
        traits=profile["traits"],
        tags=profile["tags"],
        groups=profile["groups"],
        activity=views.get("activity", {}),
        features=feature_views(views.get("features", {})),
        timers=_timers(person.timers) if as_of is None else [],
        timeline=Timeline(
            events=[event_view(event) for event in newest],
            next=write_cursor(newest[-1]) if len(newest) == params.timeline and newest else "",
        ),
        views={name: view for name, view in views.items() if name not in _SHOWN_APART},
        sources=_sources(asked.state("profile")) if params.sources else {},
        damaged_events=engine.log.damaged(person.heads),
        timezone=zone_of_person(profile, ""),
    )


_NAMES = (("name",), ("first_name", "last_name"), ("firstName", "lastName"), ("email",))
"""Traits that name somebody, as Segment and many others call them; the first that says something counts."""


def name_in(traits: Mapping[str, Any]) -> str:
    """What to call somebody of these traits, or ""."""
    for names in _NAMES:
        texts = [value.strip() for name in names if isinstance(value := traits.get(name), str) and value.strip()]
        if texts:
            return " ".join(texts)
    return ""


def _sources(profile: Mapping[str, Any]) -> dict[str, ValueSource]:
    marks = {"traits": profile["traits"], "tags": present(profile["tags"], profile["listed"])}
    return {
        f"{part}.{name}": ValueSource(event=event, occurred_at=instant(at))
        for part, values in {**marks, "groups": profile["groups"]}.items()
        for name, (at, event, value) in sorted(values.items())
        if value is not None
    }


def _newest(engine: Ports, person: Person, limit: int, as_of: int | None) -> list[Any]:
    """The newest events, or those that were the newest of what was known at an instant.

    Both hold what lies ahead and has been told, which is in no view yet.
    """
    stop = None if as_of is None else as_of + FUTURE_MAX_SECONDS * SECOND + 1
    newest_first = engine.reader.all_events(person, stop=stop, reverse=True, size=limit, skip_damaged=True)
    return list(islice((event for event in newest_first if as_of is None or event.known_at <= as_of), limit))


def lead_id(rules: Any, identifiers: Iterable[Any]) -> str:
    """What names this human across workspaces: the hash of the strongest identifier of a shared kind, or ""."""
    shared = [i for i in identifiers if rules.kind(i.kind).shared]
    if not shared:
        return ""
    return thread_id("", min(shared, key=rules.rank))


def identifier_uses(rules: Any, linked_ones: Iterable[Any], uses: dict[str, Any]) -> list[IdentifierUse]:
    """Identifiers by rank, with when each was in use: those that are linked, then those that only came with events."""
    own = sorted(linked_ones, key=rules.rank)
    result = [IdentifierUse(kind=i.kind, value=i.value, linked=True, **uses.get(str(i), {})) for i in own]
    linked = {str(i) for i in own}
    for name, use in uses.items():
        if name not in linked:
            kind, _, value = name.partition(":")
            result.append(IdentifierUse(kind=kind, value=value, linked=False, **use))
    return result


def _timers(timers: dict[str, int]) -> list[TimerView]:
    views = []
    for name, due_at in sorted(timers.items(), key=lambda item: (item[1], item[0])):
        _, policy, key = name.split("/", 2)
        views.append(TimerView(policy=policy, key=key, due_at=instant(due_at)))
    return views
