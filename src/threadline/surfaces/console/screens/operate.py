"""What operators look after: what leaves, joins in doubt, jobs, accounts, keys, who did what, erasures, health."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from threadline.kernel.counted import counted
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.operation import Operation
from threadline.kernel.screen import Load, Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.audit_sentences import SURFACE_NAMES, audit_sentence, person_of
from threadline.surfaces.console.formats import words
from threadline.surfaces.console.listing import action, column, form, listed
from threadline.surfaces.console.queues import queues, receiver
from threadline.surfaces.console.timers import Changes, changes_by_instant, timer_ahead

PAGE = 50
ADMIN = "Administration"
RUNNING = ("scheduled", "running")
SIGNS = {"ok": "good", "note": "warn", "fault": "bad"}
"""The doctor's signs as colours."""


def _lists(*lists: Any, forms: Any = ()) -> dict[str, Any]:
    return {
        "lists": [block for block in lists if block is not None],
        "forms": [block for block in forms if block is not None],
    }


EFFECT = (
    column("since", "Since", "when"),
    column("kind", "What", "words"),
    column("queue", "To"),
    column("person", "Person", "person"),
    column("cause", "Because of", "event"),
    column("why", "Why"),
    column("attempts", "Tries", "number"),
    column("data", "With", "value"),
)
QUEUE = (
    column("name", "Queue"),
    column("state", "State", "status"),
    column("waiting", "Waiting", "number"),
    column("oldest", "Oldest", "when"),
    column("retried", "Tried", "number"),
    column("unknown", "Unknown", "number"),
    column("parked", "Parked", "number"),
)
TWICE = "Send it again? If it did happen, it happens twice."


DELIVERY = (
    column("id", "Delivery", "link", path="/webhooks/deliveries/"),
    column("at", "When", "when"),
    column("to", "To"),
    column("state", "State", "status"),
    column("answer", "Answer"),
    column("milliseconds", "Took, ms", "number"),
    column("attempt", "Attempt", "number"),
    column("next_at", "Next", "when"),
    column("person", "Person", "person"),
)


def _outbox(asking: Asking) -> Mapping[str, Any]:
    cursor, queue = asking.query.get("cursor"), asking.query.get("queue")
    parked = asking.ask("effects_parked", cursor=cursor, queue=queue, limit=PAGE)
    unknown = _with_receivers(asking.ask("effects_unknown", limit=PAGE)["effects"])
    id, resolve = {"id": "id"}, "effects_resolve"
    happened = action(resolve, "It happened", id, fixed={"outcome": "happened"})
    again = action(resolve, "Send again", id, fixed={"outcome": "send_again"}, confirm=TWICE)
    give_up = action(resolve, "Give up", id, fixed={"outcome": "give_up"}, is_dangerous=True)
    redrive = action("effects_redrive", "Send again", {"ids:list": "id"})
    title = "Unknown: may or may not have happened"
    none, nothing, never = "Nothing is unknown.", "Nothing was given up on.", "Nothing has ever been sent."
    return _lists(
        listed("Queues", queues(asking), QUEUE, empty=never),
        listed(title, unknown, EFFECT, actions=[happened, again, give_up], empty=none),
        listed(
            "Parked: given up on",
            _with_receivers(parked["effects"]),
            EFFECT,
            next_=parked["next"],
            actions=[redrive],
            empty=nothing,
        ),
    )


def _with_receivers(effects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Effects with where they go in the place of their queue."""
    return [{**effect, "queue": receiver(effect["queue"], effect["data"].get("url"))} for effect in effects]


def _quarantine(asking: Asking) -> Mapping[str, Any]:
    status = asking.query.get("status", "open")
    page = asking.ask("quarantine_list", status=status, cursor=asking.query.get("cursor"), limit=PAGE)
    return {
        "status": status,
        **_lists(
            listed(
                "Merges set aside",
                page["joins"],
                [
                    column("at", "When", "when"),
                    column("identifiers", "Would be one person", "chips"),
                    column("reason", "Why not"),
                    column("event", "Event", "event"),
                    column("status", "State", "status"),
                ],
                next_=page["next"],
                actions=[
                    action(
                        "quarantine_review",
                        "Join",
                        {"id": "id"},
                        fixed={"join": "true"},
                        when=("status", ("open",)),
                        confirm="Join them? It can be undone exactly.",
                    ),
                    action(
                        "quarantine_review",
                        "Keep apart",
                        {"id": "id"},
                        fixed={"join": "false"},
                        when=("status", ("open",)),
                    ),
                ],
                empty="No merge waits for a decision.",
            ),
        ),
    }


TIMER = (
    column("due_at", "Due", "when"),
    column("what", "What will happen"),
    column("person", "To whom", "person"),
    column("detail", "Detail", "detail"),
)


def _timers(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("effects_timers", cursor=asking.query.get("cursor"), limit=PAGE)
    ahead = _changes_ahead(asking, {timer["person"] for timer in page["timers"] if timer["policy"] == "segments"})
    timers = [
        {
            **timer,
            "what": timer_ahead(asking.words, timer, ahead.get(timer["person"])),
            "detail": {name: timer[name] for name in ("policy", "key", "data")},
        }
        for timer in page["timers"]
    ]
    return _lists(listed("Timers", timers, TIMER, next_=page["next"], empty="Nothing is due later."))


def _changes_ahead(asking: Asking, people: Iterable[str]) -> Mapping[str, Changes]:
    """The changes ahead of each of these people."""
    ahead: dict[str, Changes] = {}
    calls = len(asking.calls)
    for person in filter(None, people):
        ahead[person] = changes_by_instant(asking.ask_or({}, "segments_of", id=person).get("segments", []))
    del asking.calls[calls:]  # whoever repeats the page by hand asks for timers alone
    return ahead


def _jobs(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("jobs_list", cursor=asking.query.get("cursor"), limit=PAGE)
    return _lists(
        listed(
            "Jobs",
            [{**job, "progress": _progress(job["counts"])} for job in page["jobs"]],
            [
                column("kind", "What", "words"),
                column("id", "Job", "link", path="/jobs/"),
                column("state", "State", "status"),
                column("progress", "Progress"),
                column("created_by", "By", "spoken"),
                column("created_at", "Since", "when"),
                column("problem", "Problem"),
            ],
            next_=page["next"],
            empty="No work across many people has been started. Broadcasts, refolds and what-ifs appear here.",
        ),
    )


def _progress(counts: Mapping[str, int]) -> str:
    """How far a job is: how much of how much, else what it has counted."""
    if counts.get("total"):
        return f"{counts.get('done', 0):,} of {counts['total']:,}"
    return ", ".join(f"{words(name)} {count:,}" for name, count in counts.items())


def _job(asking: Asking) -> Mapping[str, Any]:
    job = asking.ask("jobs_show", id=asking.path["id"])
    return {"job": job, "is_running": job["state"] in RUNNING}


def _accounts(asking: Asking) -> Mapping[str, Any]:
    return _lists(
        listed(
            "Accounts",
            [{**account, "signs_in": _signs_in(account)} for account in asking.ask("accounts_list")["accounts"]],
            [
                column("name", "Name"),
                column("role", "Role", "status"),
                column("signs_in", "Signs in with"),
                column("created_at", "Since", "when"),
            ],
            actions=[
                action(
                    "accounts_change", "Change role", {"name": "name"}, ask=("role",), when=("by_provider", (False,))
                ),
                action(
                    "accounts_reset_second_factor",
                    "Reset second factor",
                    {"name": "name"},
                    when=("second_factor", (True,)),
                    confirm="Take the second factor away? Do it only for who you know asks: the password alone lets "
                    "them in then.",
                    is_dangerous=True,
                ),
                action(
                    "accounts_remove",
                    "Remove",
                    {"name": "name"},
                    confirm="Remove the account? Its sessions end at once.",
                    is_dangerous=True,
                ),
            ],
            empty="Nobody has an account yet. Create the first one here.",
            note="A viewer looks. Support also merges, corrects, unsubscribes, exports and erases a person. A marketer "
            "writes to people. An operator also mends. An admin may do everything.",
        ),
        forms=[
            form(asking, "accounts_create", "New account", "Create", done="Created."),
            form(asking, "accounts_password_link", "Link to set a password", "Make a link", show="link"),
        ],
    )


def _signs_in(account: Mapping[str, Any]) -> str:
    """What somebody signs in with, in words."""
    if account["by_provider"]:
        return "Identity provider"
    return "Password and code" if account["second_factor"] else "Password"


def _keys(asking: Asking) -> Mapping[str, Any]:
    return _lists(
        listed(
            "Keys",
            [{**key, "last_used_at": _last_used(key)} for key in asking.ask("keys_list")["keys"]],
            [
                column("name", "Name"),
                column("kind", "Kind", "words"),
                column("scopes", "May", "chips"),
                column("created_at", "Since", "when"),
                column("last_used_at", "Last used", "when"),
                column("expires_at", "Expires", "when"),
                column("id", "Id", "mono"),
            ],
            actions=[
                action(
                    "keys_revoke",
                    "Revoke",
                    {"id": "id"},
                    confirm="Revoke it? Whoever uses it is refused from now on.",
                    is_dangerous=True,
                ),
            ],
            empty="There is no key but those of the settings. Create one here.",
            note="Keys of the settings are not listed here.",
        ),
        forms=[form(asking, "keys_create", "New key", "Create", show="secret")],
    )


def _last_used(key: Mapping[str, Any]) -> str:
    """When it was last used, which is noted to the hour: not before it was made."""
    return max(key["last_used_at"], key["created_at"]) if key["last_used_at"] else ""


def _audit(asking: Asking) -> Mapping[str, Any]:
    asked = {name: asking.query.get(name) for name in ("who", "operation", "object", "outcome", "start", "stop")}
    page = asking.ask("audit_log_list", **asked, cursor=asking.query.get("cursor"), limit=PAGE)
    entries = [{**entry, **_worded(entry, asking.operations.get(entry["operation"]))} for entry in page["entries"]]
    return {
        "filters": asked,
        **_lists(
            listed(
                "Who did what",
                entries,
                [
                    column("at", "When", "when"),
                    column("who", "Who", "spoken"),
                    column("sentence", "What"),
                    column("person", "To whom", "person"),
                    column("through", "Through"),
                    column("outcome", "Outcome", "status"),
                    column("detail", "Detail", "detail"),
                ],
                next_=page["next"],
                empty="Nothing was changed, or nothing that fits.",
            ),
        ),
    }


def _worded(entry: Mapping[str, Any], operation: Operation | None) -> dict[str, Any]:
    """What somebody did in words, to whom and through what, and the entry itself as a detail."""
    return {
        "sentence": audit_sentence(entry, operation),
        "person": person_of(entry, operation),
        "through": SURFACE_NAMES.get(entry["surface"], entry["surface"]),
        "detail": {name: entry[name] for name in ("operation", "object", "given", "credential", "id")},
    }


def _erasures(asking: Asking) -> Mapping[str, Any]:
    id, page = asking.query.get("id"), dict[str, Any]()
    if id:
        page = {"erasures": [asking.ask("erasures_show", id=id)], "next": ""}
    else:
        page = asking.ask("erasures_list", cursor=asking.query.get("cursor"), limit=PAGE)
    return _lists(
        listed(
            "Certificate" if id else "Erasures",
            page["erasures"],
            [
                column("id", "Erasure", "mono"),
                column("state", "State", "status"),
                column("begun_at", "Begun", "when"),
                column("by", "By", "spoken"),
                column("reason", "Reason"),
                column("events", "Events", "number"),
                column("certificate", "Certificate", "detail"),
            ],
            next_=page["next"],
            empty="Nobody was erased.",
            note="Certificates name nobody. They say what was removed, and when.",
        ),
    )


def _webhooks(asking: Asking) -> Mapping[str, Any]:
    chosen = {name: asking.query.get(name) for name in ("state", "destination")}
    page = asking.ask("webhooks_deliveries", **chosen, cursor=asking.query.get("cursor"), limit=PAGE)
    deliveries = [
        {**delivery, "to": receiver(delivery["destination"], delivery["url"]), "answer": _answer(delivery)}
        for delivery in page["deliveries"]
    ]
    return _lists(
        listed(
            "Destinations",
            asking.ask("webhooks_destinations")["destinations"],
            [
                column("name", "Name", "link", path="/webhooks/destinations/"),
                column("url", "Address", "mono"),
                column("state", "State", "status"),
                column("why", "Why"),
                column("waiting", "Waiting", "number"),
                column("oldest", "Oldest", "when"),
            ],
            actions=[
                action("webhooks_stop", "Stop", {"name": "name"}, confirm="Stop calls? What is due there is parked."),
                action("webhooks_start", "Start", {"name": "name"}),
            ],
            empty="No webhook is declared. Declare one under `destinations` in a definition file.",
        ),
        listed(
            "Deliveries",
            deliveries,
            DELIVERY,
            next_=page["next"],
            empty="Nothing was sent in the last two weeks, or nothing that fits.",
            note="The last 1,000 that arrived and the last 1,000 that did not, of two weeks, with request and answer.",
        ),
        listed(
            "Ready-made",
            asking.ask("webhooks_presets")["presets"],
            [
                column("name", "Name", "link", path="/webhooks/presets/"),
                column("title", "Sends"),
                column("description", "How"),
            ],
            note="Each is a destination to copy and make your own. They were tried against stand-ins.",
        ),
    )


def _answer(delivery: Mapping[str, Any]) -> str:
    """What came back, in short."""
    return str(delivery["status"]) if delivery["status"] else f"none: {delivery['problem']}"


def _delivery(asking: Asking) -> Mapping[str, Any]:
    delivery = asking.ask("webhooks_delivery", id=asking.path["id"])
    return {"delivery": {**delivery, "to": receiver(delivery["destination"], delivery["url"])}}


def _suppression(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("suppression_list", cursor=asking.query.get("cursor"), limit=PAGE)
    return _lists(
        listed(
            "Suppressed addresses",
            page["addresses"],
            [
                column("address", "Address"),
                column("reason", "Reason", "status"),
                column("suppressed_at", "Since", "when"),
                column("by", "By", "spoken"),
                column("note", "Note"),
                column("event", "Event", "event"),
            ],
            next_=page["next"],
            actions=[
                action(
                    "suppression_lift",
                    "Lift",
                    {"address": "address"},
                    ask=("reason",),
                    confirm="Let this address get mail again?",
                ),
            ],
            empty="Every address may get mail.",
            note="Bounces and complaints put an address here by themselves.",
        ),
        forms=[form(asking, "suppression_add", "Suppress an address", "Suppress", done="Suppressed.")],
    )


def _health(asking: Asking) -> Mapping[str, Any]:
    return {"checks": list(_checks(asking))}


def _checks(asking: Asking) -> Iterator[dict[str, Any]]:
    """What the doctor has seen, the worst first, and what those say that it does not ask."""
    findings = asking.ask("doctor")["findings"]
    for finding in sorted(findings, key=lambda item: ("fault", "note", "ok").index(item["sign"])):
        yield {
            "title": finding["what"],
            "state": SIGNS[finding["sign"]],
            "sentence": finding["sentence"],
            "since": finding["since"],
            "to_do": finding["to_do"],
            "text": finding["seen"],
        }
    try:
        search = asking.ask("search_status")
        is_whole = search["complete"]
        yield {
            "title": "search",
            "state": "good" if is_whole else "warn",
            "sentence": "Everything can be searched." if is_whole else "The newest events cannot be searched yet.",
            "to_do": "" if is_whole else "Wait; it goes on by itself while a server runs.",
            "text": f"{search['engine']}, {counted(search['documents'], 'document')}",
        }
    except ThreadlineError as error:
        yield {"title": "search", "state": "warn", "sentence": str(error), "to_do": error.hint, "text": ""}
    every = queues(asking)
    busy = [queue for queue in every if queue["waiting"] or queue["parked"] or queue["unknown"]]
    for queue in busy:
        bad = queue["parked"] + queue["unknown"]
        waits = f"{counted(queue['waiting'], 'message waits', 'messages wait')} to leave."
        yield {
            "title": f"queue {queue['name']}",
            "state": "bad" if bad else "good",
            "sentence": f"{counted(bad, 'message')} did not arrive, or may not have." if bad else waits,
            "to_do": "Send them again from the outbox once the reason is mended." if bad else "",
            "text": f"{queue['waiting']} wait, {queue['parked']} parked, {queue['unknown']} unknown",
            "path": "/outbox",
        }
    if len(every) > len(busy):
        text = f"{len(every) - len(busy)} of {len(every)} are empty"
        sentence = "In the other queues nothing waits." if busy else "Nothing waits in any queue."
        yield {"title": "queues", "state": "good", "sentence": sentence, "text": text, "path": "/outbox"}
    failed = [job for job in asking.ask_or({}, "jobs_list", limit=PAGE).get("jobs", []) if job["state"] == "failed"]
    yield {
        "title": "jobs",
        "state": "bad" if failed else "good",
        "sentence": "Work across many people has stopped half-way." if failed else "No work across many people failed.",
        "to_do": "Look at the problem of each, and start it again." if failed else "",
        "since": failed[0]["created_at"] if failed else None,
        "text": f"{len(failed)} have failed",
        "path": "/jobs",
    }


def _screen(name: str, title: str, load: Load, operation: str, summary: str, order: int, **more: Any) -> Screen:
    more = {"area": "Operations", "template": "listing.html", **more}
    return Screen(
        name=name, path=f"/{name}", title=title, load=load, operation=operation, summary=summary, order=order, **more
    )


SCREENS = (
    _screen(
        "health",
        "Health",
        _health,
        "doctor",
        "Whether all is well, and what to do where it is not.",
        59,
        template="health.html",
    ),
    _screen("outbox", "Outbox", _outbox, "effects_queues", "What leaves, what waits, and what was given up on.", 60),
    _screen("quarantine", "Merge review", _quarantine, "quarantine_list", "Two people who may be one.", 62),
    _screen("jobs", "Jobs", _jobs, "jobs_list", "Long work in the background: progress, pause, cancel.", 63),
    Screen(
        name="job",
        path="/jobs/{id}",
        title="Job",
        template="job.html",
        load=_job,
        operation="jobs_show",
        in_navigation=False,
        within="jobs",
        parts={"state": Part("job_state.html", _job)},
    ),
    _screen(
        "webhooks",
        "Webhooks",
        _webhooks,
        "webhooks_destinations",
        "Destinations of webhooks, and whether calls to them succeed.",
        64,
    ),
    Screen(
        name="delivery",
        path="/webhooks/deliveries/{id}",
        title="Delivery",
        template="delivery.html",
        load=_delivery,
        operation="webhooks_delivery",
        summary="What was sent, and what was answered.",
        in_navigation=False,
        within="webhooks",
    ),
    _screen(
        "timers",
        "Timers",
        _timers,
        "effects_timers",
        "What is due later: the next step of a journey, the end of a streak, points that expire.",
        65,
    ),
    _screen("keys", "Keys", _keys, "keys_list", "Write keys for clients, tokens for programs.", 71, area=ADMIN),
    _screen(
        "accounts", "Accounts", _accounts, "accounts_list", "Who may use this console, and for what.", 70, area=ADMIN
    ),
    _screen(
        "audit",
        "Audit log",
        _audit,
        "audit_log_list",
        "Everything that somebody changed, and who it was.",
        72,
        area=ADMIN,
        template="audit.html",
    ),
    _screen(
        "erasures",
        "Erasures",
        _erasures,
        "erasures_list",
        "People who were erased, with a proof and without a name.",
        73,
        area=ADMIN,
    ),
    _screen(
        "suppression",
        "Suppressed addresses",
        _suppression,
        "suppression_list",
        "Addresses that get no mail of any kind.",
        38,
        area="Messages",
    ),
)
