"""Find anything: a person, an event, a rule, a segment, a screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.formats import at
from threadline.surfaces.console.naming import called

EACH_MAX = 6
NAMED = (
    ("segments_list", "segments", "name", "segment", "/segments/"),
    ("rules_list", "rules", "id", "rule", "/rules/"),
    ("journeys_list", "journeys", "name", "journey", "/journeys/"),
    ("leaderboards_list", "boards", "name", "leaderboard", "/leaderboards/"),
    ("mail_templates", "templates", "name", "template", "/templates/"),
    ("features_list", "features", "name", "feature", "/features/"),
)
"""Operation, the member with its entries, their name, what they are, and the address that shows one."""


def _load(asking: Asking) -> Mapping[str, Any]:
    text = asking.query.get("q", "").strip()
    results = [*_screens(asking, text)]
    if text:
        results = [*_people(asking, text), *_named(asking, text), *results, *_events(asking, text)]
    asking.calls.clear()  # which of them were asked says nothing to whoever reads the page
    return {"found": results}


def _screens(asking: Asking, text: str) -> Iterator[dict[str, str]]:
    from threadline.surfaces.console.screens import screens_of

    for screen in screens_of(asking.engine.catalogue):
        if (
            "{" not in screen.path
            and screen.name != "find"
            and asking.may(screen.operation)
            and text.lower() in f"{screen.title} {screen.area} {screen.name}".lower()
        ):
            yield {"title": screen.title, "note": screen.summary, "kind": "screen", "path": screen.path}


def _people(asking: Asking, text: str) -> Iterator[dict[str, str]]:
    try:
        people = asking.ask("people_find", text=text, limit=EACH_MAX)["people"]
    except ThreadlineError:  # too long to be looked for
        return
    for person in people:
        because = person.get("because") or {}
        # Several may have the name: what tells them apart stands beside it.
        matching = because.get("text", "")
        note = matching if matching not in person["name"] else person["email"]
        title = person["name"] or called(person)
        path = f"/people/{quote(person['id'], safe='')}"
        yield {"title": title, "note": note or called(person), "kind": "person", "path": path}


def _named(asking: Asking, text: str) -> Iterator[dict[str, str]]:
    for operation, member, name, kind, path in NAMED:
        if not asking.may(operation):
            continue
        entries = asking.ask_or({}, operation).get(member, [])
        names = [entry[name] for entry in entries if text.lower() in entry[name].lower()]
        for title in names[:EACH_MAX]:
            yield {"title": title, "note": "", "kind": kind, "path": f"{path}{quote(title, safe='')}"}


def _events(asking: Asking, text: str) -> Iterator[dict[str, str]]:
    try:
        matches = asking.ask("search_find", text=text, limit=EACH_MAX)["hits"]
    except ThreadlineError:  # no index, or words that no search takes: the rest was found all the same
        return
    for hit in matches:
        event = hit.get("event", hit)
        yield {
            "title": asking.words.sentence(event),
            "note": at(event.get("occurred_at")),
            "kind": "event",
            "path": f"/events/{quote(event['id'], safe='')}",
        }


SCREENS = (
    Screen(
        name="find",
        path="/find",
        title="Find",
        template="find.html",
        load=_load,
        operation="people_list",
        in_navigation=False,
        parts={"list": Part("find_list.html", _load)},
    ),
)
