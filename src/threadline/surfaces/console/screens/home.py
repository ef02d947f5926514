"""Home: what happens now, what changed today, and what waits for somebody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from threadline.kernel.calendar import Calendar
from threadline.kernel.counted import counted
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Live, Part, Screen
from threadline.kernel.time import format_time
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.following import follow
from threadline.surfaces.console.formats import words
from threadline.surfaces.console.queues import queues

NEWEST = 60
"""Read for the beginning of the list; what Threadline made of the rest is folded under it."""
DAYS = 30
_OUTCOMES = {"parked": "did not arrive", "unknown": "may not have arrived"}
DRAFTS_MAX = 10
"""Drafts of a kind that are looked for."""
PROPOSED_ON = ("segments", "features", "journeys", "leaderboards")
"""Sections whose proposals stand on a screen of their name."""


def _load(asking: Asking) -> Mapping[str, Any]:
    try:
        newest = [hit["event"] for hit in asking.ask("search_find", limit=NEWEST)["hits"]]
    except ThreadlineError:  # without an index there is nothing to begin with; the list fills as events come
        newest = []
    return {"newest": newest, "waiting": list(_waiting(asking)), "counts": asking.may("analytics_trend")}


def _numbers(asking: Asking) -> Mapping[str, Any]:
    calendar = Calendar(asking.zone)
    start = format_time(calendar.start(calendar.day(asking.now) - DAYS + 1))
    try:
        _, chart = asking.picture("analytics_trend", start=start, per="day", timezone=asking.zone)
    except ThreadlineError as error:
        return {"problem": str(error), "hint": error.hint}
    return {"chart": chart, "today": asking.ask("analytics_today", timezone=asking.zone)}


def _waiting(asking: Asking) -> Iterator[dict[str, Any]]:
    """What somebody should look at, with the screen on which it is done."""
    if asking.may("effects_queues"):
        for queue in queues(asking):
            for what, kind in (("parked", "bad"), ("unknown", "warn")):
                if queue[what]:
                    title = f"{queue['name']}: {counted(queue[what], 'message')} {_OUTCOMES[what]}"
                    yield {"title": title, "kind": kind, "path": "/outbox"}
    for operation, member, values, singular, plural, path in (
        ("rejected_list", "entries", {"status": "open"}, "event was rejected", "events were rejected", "/rejected"),
        ("quarantine_list", "joins", {"status": "open"}, "merge to decide on", "merges to decide on", "/quarantine"),
    ):
        if not asking.may(operation):
            continue
        answer = asking.ask(operation, limit=100, **values)
        if count := len(answer[member]):
            more = "More than " if answer["next"] else ""
            yield {"title": f"{more}{counted(count, singular, plural)}", "kind": "warn", "path": path}
    if asking.may("definitions_accept"):
        for proposal in asking.ask("definitions_proposals")["proposals"]:
            if not proposal["declined_by"] and proposal["section"] in PROPOSED_ON:
                title = (
                    f"{proposal['by']} proposes the {proposal['section'].removesuffix('s')} {words(proposal['name'])}"
                )
                yield {"title": title, "kind": "warn", "path": f"/{proposal['section']}#proposals"}
    yield from _drafts(asking)
    for job in asking.ask_or({}, "jobs_list", limit=20).get("jobs", []):
        path = f"/jobs/{quote(job['id'], safe='')}"
        if job["state"] == "failed":
            yield {"title": f"The job {job['kind']} has failed: {job['problem']}", "kind": "bad", "path": path}
        elif job["state"] in ("scheduled", "running") and job["problem"] and job["kind"] == "definitions_apply":
            yield {"title": f"Definitions are not applied: {job['problem']}", "kind": "warn", "path": path}


def _drafts(asking: Asking) -> Iterator[dict[str, Any]]:
    """What somebody has begun and nobody has put in force or sent."""
    if asking.may("rules_activate"):
        for state in ("draft", "tested"):
            for rule in asking.ask("rules_list", state=state, limit=DRAFTS_MAX)["rules"]:
                if rule["state"] != state:
                    continue  # an older version of it
                title = f"The rule {rule['name'] or rule['id']} has a version {rule['newest']} that is not active"
                yield {"title": title, "kind": "warn", "path": f"/rules/{quote(rule['id'], safe='')}"}
    if asking.may("broadcasts_start"):
        drafts = asking.ask("broadcasts_list", limit=DRAFTS_MAX)["broadcasts"]
        for broadcast in drafts:
            if broadcast["state"] == "draft":
                title = f"The broadcast {broadcast['id']} is a draft"
                yield {"title": title, "kind": "warn", "path": f"/broadcasts/{quote(broadcast['id'], safe='')}"}


SCREENS = (
    Screen(
        name="home",
        path="/",
        title="Home",
        template="home.html",
        load=_load,
        operation="people_list",
        order=0,
        summary="What happens now, what changed today, and what waits for somebody.",
        parts={"numbers": Part("home_numbers.html", _numbers)},
        live=Live("events_rows.html", follow),
    ),
)
