"""One person: what happened, what is known and from where, what was decided, and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from threadline.capabilities.foundation.events.causes import words
from threadline.capabilities.reach.consent.events import SUPPRESSION, WORDS
from threadline.kernel.consequences import Consequences
from threadline.kernel.errors import NotFound, ThreadlineError
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.screen import Fresh, Live, Part, Screen
from threadline.kernel.time import DAY, HOUR, SECOND, YEAR, format_time, parse_time
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.calendar import year_of_days
from threadline.surfaces.console.screens.journeys import step_labels
from threadline.surfaces.console.timers import changes_by_instant, timer_ahead
from threadline.surfaces.console.trace import tree_of

PAGE = 30
FACTS = 35
LIVE_MAX = 100
MAILS_OF = ("template", "journey", "broadcast")
BROADCASTS = 50
"""The newest, among which one is chosen that did not come."""
SPAN_OF_DAYS = 60 * DAY
"""The slider has a step a day from this span on, and below it a step an hour."""

TABS = (
    ("overview", "Overview"),
    ("memory", "Memory"),
    ("features", "Features"),
    ("activity", "Activity"),
    ("segments", "Segments"),
    ("reach", "Messages"),
    ("decisions", "Decisions"),
    ("identity", "Identity"),
    ("privacy", "Privacy"),
)
QUESTIONS = (
    ("Mail they got", "reach", "", "mail_history"),
    ("Mail they did not get", "reach", "#why-not", "mail_why_not"),
    ("Merge with somebody", "identity", "", "people_merge"),
    ("Correct a fact", "memory", "", "memory_remember"),
    ("Subscriptions and proof", "privacy", "", "consent_of"),
    ("Export", "privacy", "#export", "people_export"),
    ("Erase", "privacy", "#erase", "people_erase"),
)
"""What somebody of support is asked, below what happened: title, tab, place on it, and the operation that does it."""
TAB_NEEDS = {"memory": "memory_of", "activity": "streaks_of", "decisions": "decisions_list"}
"""The operation without which a tab has nothing to show: where it is not in force, there is no tab."""


def _load(asking: Asking) -> Mapping[str, Any]:
    tabs = [tab for tab in TABS if TAB_NEEDS.get(tab[0], "") in ("", *asking.operations)]
    tab = asking.query.get("tab", "overview")
    tab = tab if tab in dict(tabs) else "overview"
    person = asking.ask("person", id=asking.path["id"], timeline=0, sources=tab == "overview" or None)
    return {"p": person, "tab": tab, "tabs": tabs, "base": f"/people/{person['id']}", **LOADS[tab](asking, person)}


def _id(asking: Asking) -> str:
    return asking.path["id"]


# --- overview ---------------------------------------------------------------------------------------


def _overview(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    page = asking.ask(
        "events_of", id=person["id"], type=asking.query.get("type"), cursor=asking.query.get("cursor"), limit=PAGE
    )
    since = max((event["recorded_at"] for event in page["events"]), default="")
    interests = asking.ask_or({}, "interests_of", id=person["id"]).get("topics", [])
    segments = asking.ask("segments_of", id=person["id"])["segments"]
    changes = changes_by_instant(segments)
    return {
        "page": page,
        "timers": [{**timer, "what": timer_ahead(asking.words, timer, changes)} for timer in person["timers"]],
        "after": f"{page['position']} {since}",
        "interests": interests,
        "members": [segment["segment"] for segment in segments if segment["member"]],
        "questions": QUESTIONS,
    }


def _live(asking: Asking, cursor: str) -> Fresh:
    """What was recorded of this person since: the cursor is their number of events, and when the last was recorded."""
    position, _, since = cursor.partition(" ")
    asked = {"id": _id(asking), "type": asking.query.get("type")}
    page = asking.ask("events_of", **asked, limit=1)
    if str(page["position"]) == position:
        return Fresh([], cursor, 0)
    page = asking.ask("events_of", **asked, limit=LIVE_MAX)
    fresh = sorted((event["recorded_at"], event["id"]) for event in page["events"] if event["recorded_at"] > since)
    by_id = {event["id"]: event for event in page["events"]}
    after = f"{page['position']} {fresh[-1][0] if fresh else since}"
    items = [by_id[id] for _, id in fresh] if cursor else []
    return Fresh(items, after, len(items))


# --- memory -----------------------------------------------------------------------------------------


def _memory(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    limit = None if asking.query.get("all") else FACTS + 1
    memory = asking.ask("memory_of", id=person["id"], text=asking.query.get("text"), limit=limit)
    is_cut = limit is not None and len(memory["facts"]) == limit
    facts = memory["facts"][:FACTS] if is_cut else memory["facts"]
    return {"memory": {**memory, "facts": facts}, "is_cut": is_cut, "correct": _to_correct(asking, person["id"])}


def _to_correct(asking: Asking, id: str) -> Mapping[str, Any] | None:
    """The fact that is to be corrected, where one is."""
    type, key = asking.query.get("type"), asking.query.get("key")
    if not type or not key:
        return None
    try:
        fact: Mapping[str, Any] | None = asking.ask("memory_fact", id=id, type=type, key=key)
    except ThreadlineError:
        return None
    return fact


def _lineage(asking: Asking) -> Mapping[str, Any]:
    query = asking.query
    page = asking.ask("memory_lineage", id=_id(asking), type=query.get("type"), key=query.get("key"), limit=PAGE)
    return {"events": page["events"], "more": page["next"]}


# --- features as of an instant ----------------------------------------------------------------------


def _features(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    first = parse_time(person["activity"].get("first_seen_at") or person["created_at"])
    step = DAY if asking.now - first > SPAN_OF_DAYS else HOUR
    events = asking.ask("events_of", id=person["id"], limit=500)["events"]
    span = max(asking.now - first, 1)
    ticks = sorted({round(1000 * (parse_time(event["occurred_at"]) - first) / span) for event in events})
    return {
        "slider": {
            "min": first // step * step // SECOND,
            "max": -(-asking.now // step) * step // SECOND,
            "step": step // SECOND,
            "value": _instant(asking) // SECOND,
            "ticks": [tick for tick in ticks if 0 <= tick <= 1000],
        },
        "is_now": not asking.query.get("at"),
        **_features_at(asking),
    }


def _instant(asking: Asking) -> int:
    """The instant that is asked for: seconds since 1970, as the slider gives them, or a written one; never ahead."""
    text = asking.query.get("at", "")
    at = int(text) * SECOND if text.isascii() and text.isdigit() and len(text) < 12 else parse_time(text) if text else 0
    return min(at or asking.now, asking.now)


def _features_at(asking: Asking) -> Mapping[str, Any]:
    at, known = _instant(asking), asking.query.get("known") or "now"
    asked = {"id": _id(asking), "as_of": format_time(at) if at < asking.now else None}
    now = asking.ask("features_of", id=_id(asking))["features"]
    try:
        then = asking.ask("features_of", **asked, known=known)["features"]
        segments = asking.ask("segments_of", **asked)["segments"]
    except NotFound:  # nobody knew this person then
        return {"at": format_time(at), "known": known, "rows": [], "members": []}
    rows = [{"name": name, "then": value, "now": now.get(name, {})} for name, value in then.items()]
    shown = [row for row in rows if row["then"]["status"] != "NOT_FOUND" or row["now"]["status"] != "NOT_FOUND"]
    return {
        "at": format_time(at),
        "known": known,
        "rows": shown,
        "silent": len(rows) - len(shown),
        "members": [segment["segment"] for segment in segments if segment["member"]],
    }


# --- streaks and points -----------------------------------------------------------------------------


def _activity(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    points = asking.ask_or(None, "points_of", id=person["id"])
    cursor = asking.query.get("cursor")
    ledger = asking.ask_or({"lines": [], "next": ""}, "points_ledger", id=person["id"], cursor=cursor, limit=PAGE)
    streaks = asking.ask("streaks_of", id=person["id"])["streaks"]
    return {"points": points, "ledger": ledger, "streaks": streaks, "until": asking.query.get("until", "")}


def _calendar(asking: Asking) -> Mapping[str, Any]:
    """The year before the day ``until``; without one the last year in which something happened."""
    today = date.fromisoformat(format_time(asking.now)[:10])
    until = asking.query.get("until", "")
    if not until:
        person = asking.ask("person", id=_id(asking), timeline=0)
        last = person["activity"].get("last_seen_at") or person["created_at"]
        stop = today if asking.now - parse_time(last) < YEAR else date.fromisoformat(last[:10])
    else:
        stop = parse_date(until)
    stop = min(stop, today) + timedelta(days=1)
    days = asking.ask(
        "streaks_days", id=_id(asking), start=_before(stop, 370), stop=stop.isoformat(), first_events=False
    )
    return {"year": year_of_days(days["days"], stop), "zone": days["zone"], "is_last": stop > today}


def parse_date(text: str) -> date:
    """A day as the calendar's links give it. Raises `NotFound` for what is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise NotFound(f"{text[:40]!r} is not a day; write it like 2026-03-01") from None


def _before(day: date, days: int) -> str:
    return (day - timedelta(days=days)).isoformat() if day.year > 2 else day.isoformat()


# --- segments and rules -----------------------------------------------------------------------------


def _segments(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    segments = asking.ask("segments_of", id=person["id"])["segments"]
    rules = asking.ask_or({}, "rules_list", limit=100).get("rules", [])
    return {"segments": sorted(segments, key=lambda segment: not segment["member"]), "rules": rules}


def _segment_why(asking: Asking) -> Mapping[str, Any]:
    name = asking.query.get("segment", "")
    why = asking.ask("segments_why", id=_id(asking), segment=name)
    declared = {segment["name"]: segment["when"] for segment in asking.ask("segments_list")["segments"]}
    return {"why": why, "tree": tree_of(declared.get(name), why["steps"])}


def _rule_why(asking: Asking) -> Mapping[str, Any]:
    why = asking.ask("rules_why", id=_id(asking), rule=asking.query.get("rule"))
    rule = asking.ask("rules_show", id=why["rule"], version=why["version"])
    return {"why": why, "tree": tree_of(rule["content"].get("conditions"), why["decision"]["trace"])}


# --- journeys and mail ------------------------------------------------------------------------------


def _reach(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    journeys = [journey["name"] for journey in asking.ask_or({}, "journeys_list").get("journeys", [])]
    templates = [template["name"] for template in asking.ask_or({}, "mail_templates").get("templates", [])]
    broadcasts = asking.ask_or({}, "broadcasts_list", limit=BROADCASTS).get("broadcasts", [])
    mails = asking.ask_or({}, "mail_history", id=person["id"]).get("mails", [])
    why_not = _why_not(asking, person["id"])
    return {
        "journeys": asking.ask_or({}, "journeys_of", id=person["id"]).get("executions", []),
        "all_journeys": journeys,
        "mails": mails,
        "steps": _steps(asking, [*mails, *(why_not or {"mails": []})["mails"]]),
        "templates": templates,
        "alerts": asking.ask_or({}, "alerts_of", id=person["id"]).get("alerts", []),
        "mails_of": [
            ("Templates", "template", templates),
            ("Journeys", "journey", journeys),
            ("Broadcasts", "broadcast", [broadcast["id"] for broadcast in broadcasts]),
        ],
        "why_not": why_not,
    }


def _steps(asking: Asking, mails: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """What the steps are called of the journeys that mails are of."""
    calls = len(asking.calls)
    names = dict.fromkeys(mail["journey"] for mail in mails if mail.get("journey") and mail.get("step"))
    steps = {name: step_labels(asking, name) for name in names}
    del asking.calls[calls:]  # they name what the answers have
    return steps


def _why_not(asking: Asking, id: str) -> Mapping[str, Any] | None:
    """The answer to "Why not …?", where it was asked."""
    chosen = asking.query.get("why_not", "")
    kind, _, name = chosen.partition(":")
    if not chosen or "mail_why_not" not in asking.operations:
        return None
    try:
        answer: Mapping[str, Any] = asking.ask("mail_why_not", id=id, **({kind: name} if kind in MAILS_OF else {}))
    except ThreadlineError as error:
        return {"problem": str(error), "mails": []}
    return answer


def _way(asking: Asking) -> Mapping[str, Any]:
    query = asking.query
    return {**asking.ask("journeys_history", id=_id(asking), name=query.get("journey"), run=query.get("run"))}


def _mail(asking: Asking) -> Mapping[str, Any]:
    try:
        return {"mail": asking.ask("mail_as_sent", id=_id(asking), message=asking.query.get("message"))}
    except ThreadlineError as error:
        return {"problem": str(error), "hint": error.hint}


def _mail_html(asking: Asking) -> Mapping[str, Any]:
    return {"document": asking.ask("mail_as_sent", id=_id(asking), message=asking.query.get("message"))["html"]}


# --- decisions --------------------------------------------------------------------------------------


def _decisions(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    query = asking.query
    page = asking.ask(
        "decisions_list", person=person["id"], rule=query.get("rule"), cursor=query.get("cursor"), limit=PAGE
    )
    return {"page": page}


def _decision(asking: Asking) -> Mapping[str, Any]:
    audit = asking.ask("decisions_audit", decision=asking.query.get("decision"))
    return {"audit": audit, "tree": tree_of(audit["rule"].get("conditions"), audit["decision"]["trace"])}


# --- identity ---------------------------------------------------------------------------------------


def _identity(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    changes = asking.ask("events_of", id=person["id"], types=[MERGED, SPLIT], limit=PAGE)["events"]
    return {"changes": changes, "undoable": _undoable(changes), "previews": dict(_previews(asking, person["id"]))}


def _undoable(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The merges, by the ids of their events, of whom nobody has been split off since."""
    merges: dict[str, set[Any]] = {}
    for change in reversed(changes):
        given = change["properties"]
        if change["type"] == MERGED:
            merges[change["id"]] = {given.get("merged"), given.get("survivor")}
        else:
            merges = {id: both for id, both in merges.items() if given.get("split") not in both}
    return list(merges)


def _previews(asking: Asking, id: str) -> Any:
    """What a merge or a split would lead to, where one of them is asked for."""
    other, taken = asking.query.get("other"), list(asking.queries.get("take", ()))
    reason = asking.query.get("reason", "")
    asked: list[tuple[str, str, Callable[[], Any]]] = [
        ("merge", other or "", lambda: _with_causes(asking.ask("people_merge_preview", id=id, other=other))),
        ("split", " ".join(taken), lambda: asking.ask("people_split", id=id, identifiers=taken, dry_run=True)),
    ]
    for kind, wanted, ask in asked:
        if wanted.strip():
            try:
                yield kind, {"result": ask(), "other": other, "taken": taken, "reason": reason}
            except ThreadlineError as error:
                yield kind, {"problem": str(error), "hint": error.hint, "other": other, "taken": taken}


def _with_causes(preview: Mapping[str, Any]) -> Mapping[str, Any]:
    """The preview of a merge, with what it would cause in words where it would send anything."""
    consequences = Consequences(**preview["causes"])
    return {**preview, "sends": words(consequences) if consequences.sent else ""}


# --- privacy ----------------------------------------------------------------------------------------


def _privacy(asking: Asking, person: Mapping[str, Any]) -> Mapping[str, Any]:
    address = asking.query.get("address")
    topics = {topic["name"]: topic for topic in asking.ask_or({}, "consent_topics").get("topics", [])}
    words_of_consent = asking.ask("events_of", id=person["id"], types=sorted(WORDS | SUPPRESSION), limit=PAGE)["events"]
    content: dict[str, Any] = {"topics": topics, "consent": None, "erasure": None, "proof": words_of_consent}
    try:
        content["consent"] = asking.ask("consent_of", id=person["id"], address=address)
    except ThreadlineError as error:
        content["problem"] = str(error)
    if asking.query.get("erase") == "preview" and asking.may("people_erase"):
        content["erasure"] = asking.ask("people_erase", id=person["id"], dry_run=True)
    return content


LOADS: Mapping[str, Callable[[Asking, Mapping[str, Any]], Mapping[str, Any]]] = {
    "overview": _overview,
    "memory": _memory,
    "features": _features,
    "activity": _activity,
    "segments": _segments,
    "reach": _reach,
    "decisions": _decisions,
    "identity": _identity,
    "privacy": _privacy,
}

SCREENS = (
    Screen(
        name="person",
        path="/people/{id}",
        title="Person",
        template="person.html",
        load=_load,
        operation="person",
        in_navigation=False,
        within="people",
        parts={
            "lineage": Part("person_lineage.html", _lineage),
            "features": Part("person_features_at.html", _features_at),
            "calendar": Part("person_calendar.html", _calendar),
            "segment": Part("person_segment_why.html", _segment_why),
            "rule": Part("person_rule_why.html", _rule_why),
            "way": Part("person_way.html", _way),
            "mail": Part("person_mail.html", _mail),
            "mail_html": Part("", _mail_html, is_document=True),
            "decision": Part("person_decision.html", _decision),
            "export": Part("", lambda asking: {"id": _id(asking)}, download="people_export"),
        },
        live=Live("person_rows.html", _live),
    ),
)
