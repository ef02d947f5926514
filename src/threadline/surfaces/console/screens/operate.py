"""What operators look after: what leaves, joins in doubt, jobs, accounts, keys, who did what, erasures, health."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.operation import Operation
from threadline.kernel.screen import Load, Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.audit_sentences import SURFACE_NAMES, audit_sentence, person_of
from threadline.surfaces.console.listing import action, column, form, listed

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
    column("queue", "Queue"),
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


def _outbox(asking: Asking) -> Mapping[str, Any]:
    cursor, queue = asking.query.get("cursor"), asking.query.get("queue")
    parked = asking.ask("effects_parked", cursor=cursor, queue=queue, limit=PAGE)
    unknown = asking.ask("effects_unknown", limit=PAGE)["effects"]
    id, resolve = {"id": "id"}, "effects_resolve"
    happened = action(resolve, "It happened", id, fixed={"outcome": "happened"})
    again = action(resolve, "Send again", id, fixed={"outcome": "send_again"}, confirm=TWICE)
    give_up = action(resolve, "Give up", id, fixed={"outcome": "give_up"}, is_dangerous=True)
    redrive = action("effects_redrive", "Send again", {"ids:list": "id"})
    title = "Unknown: claimed, and nobody knows whether it happened"
    none, nothing, never = "Nothing is unknown.", "Nothing was given up on.", "Nothing has ever been sent."
    return _lists(
        listed("Queues", asking.ask("effects_queues")["queues"], QUEUE, empty=never),
        listed(title, unknown, EFFECT, actions=[happened, again, give_up], empty=none),
        listed(
            "Parked: given up on", parked["effects"], EFFECT, next_=parked["next"], actions=[redrive], empty=nothing
        ),
    )


def _quarantine(asking: Asking) -> Mapping[str, Any]:
    status = asking.query.get("status", "open")
    page = asking.ask("quarantine_list", status=status, cursor=asking.query.get("cursor"), limit=PAGE)
    return {
        "status": status,
        **_lists(
            listed(
                "Joins that were set aside",
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
                empty="No join is in doubt.",
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
    timers = [
        {
            **timer,
            "what": asking.words.timer_sentence(timer),
            "detail": {name: timer[name] for name in ("policy", "key", "data")},
        }
        for timer in page["timers"]
    ]
    return _lists(listed("Timers", timers, TIMER, next_=page["next"], empty="Nothing is due later."))


def _jobs(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("jobs_list", cursor=asking.query.get("cursor"), limit=PAGE)
    return _lists(
        listed(
            "Jobs",
            page["jobs"],
            [
                column("id", "Job", "link", path="/jobs/"),
                column("kind", "What", "words"),
                column("state", "State", "status"),
                column("counts", "Progress", "value"),
                column("created_by", "By"),
                column("created_at", "Since", "when"),
                column("problem", "Problem"),
            ],
            next_=page["next"],
            empty="No work across many people has been started. Broadcasts, refolds and what-ifs appear here.",
        ),
    )


def _job(asking: Asking) -> Mapping[str, Any]:
    job = asking.ask("jobs_show", id=asking.path["id"])
    return {"job": job, "is_running": job["state"] in RUNNING}


def _accounts(asking: Asking) -> Mapping[str, Any]:
    return _lists(
        listed(
            "Accounts",
            asking.ask("accounts_list")["accounts"],
            [
                column("name", "Name"),
                column("role", "Role", "status"),
                column("created_at", "Since", "when"),
            ],
            actions=[
                action("accounts_change", "Change role", {"name": "name"}, ask=("role",)),
                action(
                    "accounts_remove",
                    "Remove",
                    {"name": "name"},
                    confirm="Remove the account? Its sessions end at once.",
                    is_dangerous=True,
                ),
            ],
            empty="Nobody has an account yet. Create the first one here.",
            note="A viewer looks. A marketer also writes to people. An operator also mends. An admin may everything.",
        ),
        forms=[form(asking, "accounts_create", "New account", "Create", done="Created.")],
    )


def _keys(asking: Asking) -> Mapping[str, Any]:
    return _lists(
        listed(
            "Keys",
            asking.ask("keys_list")["keys"],
            [
                column("id", "Id", "mono"),
                column("kind", "Kind", "words"),
                column("name", "Name"),
                column("scopes", "May", "chips"),
                column("created_at", "Since", "when"),
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
                    column("who", "Who"),
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
    page = asking.ask("erasures_list", cursor=asking.query.get("cursor"), limit=PAGE)
    return _lists(
        listed(
            "Erasures",
            page["erasures"],
            [
                column("id", "Erasure", "mono"),
                column("state", "State", "status"),
                column("begun_at", "Begun", "when"),
                column("by", "By"),
                column("reason", "Reason"),
                column("events", "Events", "number"),
                column("certificate", "Certificate", "value"),
            ],
            next_=page["next"],
            empty="Nobody was erased.",
            note="Certificates name nobody. They say what was removed, and when.",
        ),
    )


def _webhooks(asking: Asking) -> Mapping[str, Any]:
    return _lists(
        listed(
            "Destinations",
            asking.ask("webhooks_destinations")["destinations"],
            [
                column("name", "Name"),
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
            empty="No webhook is declared. Declare one under `webhooks` in a definition file.",
        ),
    )


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
                column("by", "By"),
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


def _alerts(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("alerts_list", state=asking.query.get("state"), cursor=asking.query.get("cursor"), limit=PAGE)
    return _lists(
        listed(
            "Alerts",
            page["alerts"],
            [
                column("id", "Alert", "mono"),
                column("title", "Title"),
                column("severity", "Severity", "status"),
                column("state", "State", "status"),
                column("start", "From", "when"),
                column("stop", "Until", "when"),
                column("problem", "Problem"),
            ],
            next_=page["next"],
            actions=[
                action(
                    "alerts_withdraw",
                    "Withdraw",
                    {"id": "id"},
                    when=("state", ("active", "scheduled")),
                    confirm="Withdraw it? Nobody sees it any more.",
                    is_dangerous=True,
                ),
            ],
            empty="No alert was written. Write the first one here.",
            note="People see alerts inside your application, through its own API.",
        ),
        forms=[form(asking, "alerts_write", "Write an alert", "Publish", done="Published.", leave_out=("expected",))],
    )


def _health(asking: Asking) -> Mapping[str, Any]:
    return {"checks": list(_checks(asking))}


def _checks(asking: Asking) -> Iterator[dict[str, str]]:
    """What the doctor has seen, the worst first, and what is said by those that it does not ask."""
    findings = asking.ask("doctor")["findings"]
    for finding in sorted(findings, key=lambda item: ("fault", "note", "ok").index(item["sign"])):
        yield {"title": finding["what"], "state": SIGNS[finding["sign"]], "text": finding["seen"]}
    try:
        search = asking.ask("search_status")
        rest = "" if search["complete"] else ", and it has not reached the end of the log yet"
        text = f"{search['engine']}, {search['documents']:,} documents{rest}"
        yield {"title": "search", "state": "good" if search["complete"] else "warn", "text": text}
    except ThreadlineError as error:
        yield {"title": "search", "state": "warn", "text": str(error)}
    queues = asking.ask_or({}, "effects_queues").get("queues", [])
    busy = [queue for queue in queues if queue["waiting"] or queue["parked"] or queue["unknown"]]
    for queue in busy:
        bad = queue["parked"] + queue["unknown"]
        text = f"{queue['waiting']} wait, {queue['parked']} parked, {queue['unknown']} unknown"
        name = f"queue {queue['name'] or 'of no name'}"
        yield {"title": name, "state": "bad" if bad else "good", "text": text, "path": "/outbox"}
    if len(queues) > len(busy):
        text = f"{len(queues) - len(busy)} of {len(queues)} are empty"
        yield {"title": "queues", "state": "good", "text": text, "path": "/outbox"}
    failed = [job for job in asking.ask_or({}, "jobs_list", limit=PAGE).get("jobs", []) if job["state"] == "failed"]
    state, text = ("bad", f"{len(failed)} have failed") if failed else ("good", "None has failed.")
    yield {"title": "jobs", "state": state, "text": text, "path": "/jobs"}


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
    _screen("jobs", "Jobs", _jobs, "jobs_list", "Work across many people that survives restarts.", 63),
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
        "Where events are sent, and whether they arrive.",
        64,
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
    _screen(
        "alerts",
        "Alerts",
        _alerts,
        "alerts_list",
        "Messages that people see inside an application.",
        39,
        area="Messages",
    ),
)
