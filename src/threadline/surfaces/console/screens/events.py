"""Events: what happens now, what is found by its words, one event with all that hangs on it, and their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import NotConfigured, ThreadlineError, Unavailable
from threadline.kernel.screen import Live, Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.event_types import suggested
from threadline.surfaces.console.following import follow

SEARCHED = ("text", "kind", "type", "person", "rule", "status", "start", "stop")
"""What the form asks for; each is a parameter of the search."""
PAGE = 30
READ, READS_MAX, OWN_MIN = 75, 2, 15
"""Events that are read at once of a page on which what Threadline noted is folded, how often it is read on, and with
how many events of people's own it is enough."""


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"types": suggested(asking.ask("catalogue")["event_types"]), **_found(asking)}


def _found(asking: Asking) -> Mapping[str, Any]:
    asked = {name: asking.query.get(name) for name in SEARCHED}
    is_asked = any(asked.values()) or "cursor" in asking.query
    is_folded = not any(asked.values()) and not asking.query.get("all")
    limit, cursor = READ if is_folded else PAGE, asking.query.get("cursor")
    results = asking.ask("search_find", **asked, cursor=cursor, limit=limit, facets=is_asked)
    calls = len(asking.calls)
    # What Threadline notes by itself is folded: more is read until people have done something.
    for _ in range(READS_MAX if is_folded else 0):
        if not results["next"] or sum(asking.words.is_own(hit["event"]) for hit in results["hits"]) >= OWN_MIN:
            break
        further = asking.ask("search_find", cursor=results["next"], limit=READ)
        results = {**further, "hits": results["hits"] + further["hits"]}
    del asking.calls[calls:]
    return {"found": results, "is_asked": is_asked, "is_folded": is_folded}


def _one(asking: Asking) -> Mapping[str, Any]:
    event = asking.ask("events_show", id=asking.path["id"])
    return {"event": event, "schema": asking.ask("catalogue")["event_schemas"].get(event["type"])}


def _links(asking: Asking) -> Mapping[str, Any]:
    return {"linked": asking.ask("search_correlate", id=asking.path["id"], limit=100)}


def _schemas(asking: Asking) -> Mapping[str, Any]:
    known = asking.ask("catalogue")
    types = [
        {**type, "made": [p["name"] for p in known["projections"] if p["handles"] and type["name"] in p["handles"]]}
        for type in known["types"]
    ]
    return {
        "types": types,
        "schemas": known["event_schemas"],
        "wanted": asking.query.get("type", ""),
        "kinds": known["identifiers"],
        "newest": _newest(asking),
    }


def _newest(asking: Asking) -> Mapping[str, Any] | None:
    """How many of the newest events have which type; None where nothing counts them."""
    try:
        answer = asking.ask_or(None, "search_find", limit=1, facets=True)
    except (NotConfigured, Unavailable):  # a store without a search index
        return None
    return None if answer is None else answer["facets"]


def _rejected(asking: Asking) -> Mapping[str, Any]:
    status = asking.query.get("status", "open")
    code, cursor = asking.query.get("code"), asking.query.get("cursor")
    return {"page": asking.ask("rejected_list", status=status, code=code, cursor=cursor, limit=PAGE), "status": status}


def _rejected_one(asking: Asking) -> Mapping[str, Any]:
    entry = asking.ask("rejected_show", id=asking.path["id"])
    try:
        there = asking.ask("events_show", id=entry["event_id"]) if entry.get("event_id") else None
    except ThreadlineError:  # such as an event that was erased meanwhile
        there = None
    return {"entry": entry, "there": there}


SCREENS = (
    Screen(
        name="events",
        path="/events",
        title="Events",
        template="events.html",
        load=_load,
        operation="events_feed",
        summary="Everything that happened, as it happens; and a search through all of it.",
        order=14,
        parts={"found": Part("events_found.html", _found)},
        live=Live("events_rows.html", follow),
    ),
    Screen(
        name="event",
        path="/events/{id}",
        title="Event",
        template="event.html",
        load=_one,
        operation="events_show",
        in_navigation=False,
        within="events",
        parts={"linked": Part("event_linked.html", _links)},
    ),
    Screen(
        name="schemas",
        path="/schemas",
        title="Event schemas",
        template="schemas.html",
        load=_schemas,
        operation="catalogue",
        summary="Which events are known, what must be in them, and what is made of them.",
        area="Operations",
        order=66,
    ),
    Screen(
        name="rejected",
        path="/rejected",
        title="Rejected events",
        template="rejected.html",
        load=_rejected,
        operation="rejected_list",
        summary="What could not be recorded, and why. Nothing of it is lost: correct it, "
        "and it is recorded as if it had come right at once.",
        area="Operations",
        order=61,
    ),
    Screen(
        name="rejected_one",
        path="/rejected/{id}",
        title="Rejected event",
        template="rejected_one.html",
        load=_rejected_one,
        operation="rejected_show",
        in_navigation=False,
        within="rejected",
    ),
)
