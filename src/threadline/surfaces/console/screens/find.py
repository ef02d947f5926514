"""Find anything: a person, an event, a rule, a segment, a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from threadline.capabilities.ask.search.words import folded
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.formats import at, label, words
from threadline.surfaces.console.naming import called
from threadline.surfaces.console.screens.analytics import GROUP, analyses_of

EACH_MAX = 6
ENTRIES_MAX = 500


class Named(NamedTuple):
    """Definitions that are found by their names."""

    operation: str
    member: str
    """Of the answer: the entries."""
    name: str
    """Of an entry: what its address has."""
    kind: str
    path: str
    shown: Callable[[Any], str] = words
    """Its name as screens show it."""
    title: str = ""
    """Of an entry: what else it is found by."""
    is_paged: bool = False


NAMED = (
    Named("segments_list", "segments", "name", "segment", "/segments/"),
    Named("rules_list", "rules", "id", "rule", "/rules/", str, title="name", is_paged=True),
    Named("journeys_list", "journeys", "name", "journey", "/journeys/"),
    Named("broadcasts_list", "broadcasts", "id", "broadcast", "/broadcasts/", str, title="subject", is_paged=True),
    Named("leaderboards_list", "boards", "name", "leaderboard", "/leaderboards/"),
    Named("mail_templates", "templates", "name", "template", "/templates/", str, title="subject"),
    Named("features_list", "features", "name", "feature", "/features/", label),
)


def _load(asking: Asking) -> Mapping[str, Any]:
    text = asking.query.get("q", "").strip()
    results = [*_screens(asking, text)]
    if text:
        results = [
            *_people(asking, text),
            *_named(asking, text),
            *_analyses(asking, text),
            *results,
            *_events(asking, text),
        ]
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
    """Definitions of whose name or title the text is part, as they are written or as screens show them."""
    parts = [folded(part) for part in text.split()]
    for named in NAMED:
        if not asking.may(named.operation):
            continue
        limit = {"limit": ENTRIES_MAX} if named.is_paged else {}
        entries = asking.ask_or({}, named.operation, **limit).get(named.member, [])
        for entry in [entry for entry in entries if _has(named, entry, parts)][:EACH_MAX]:
            name, title = entry[named.name], entry.get(named.title) or ""
            yield {
                "title": title or named.shown(name) if named.kind == "rule" else named.shown(name),
                "note": "" if named.kind == "rule" else title,
                "kind": named.kind,
                "path": f"{named.path}{quote(name, safe='')}",
            }


def _analyses(asking: Asking, text: str) -> Iterator[dict[str, str]]:
    parts = [folded(part) for part in text.split()]
    for analysis in analyses_of(asking):
        texts = folded(f"{analysis['name']} {analysis['title']} {analysis['question']}")
        if asking.may(f"{GROUP}{analysis['name']}") and all(part in texts for part in parts):
            path = f"/analytics/{quote(analysis['name'], safe='')}"
            yield {"title": analysis["title"], "note": analysis["question"], "kind": "analysis", "path": path}


def _has(named: Named, entry: Mapping[str, Any], parts: list[str]) -> bool:
    name = entry[named.name]
    texts = folded(f"{name} {named.shown(name)} {entry.get(named.title) or ''}")
    return all(part in texts for part in parts)


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
