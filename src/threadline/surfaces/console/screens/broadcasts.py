"""Broadcasts: a mail to everybody of an audience, once: written in steps, tried on the audience, followed, measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from threadline.kernel.counted import counted
from threadline.kernel.errors import Conflict, ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console import broadcast_form, condition_form
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.broadcast_form import BroadcastForm
from threadline.surfaces.console.editing import shown_conditions
from threadline.surfaces.console.formats import MAIL_COUNTS, label
from threadline.surfaces.console.sentences import event_name
from threadline.surfaces.console.trace import tree_of_conditions

PAGE = 30
COUNT_SECONDS = 1
"""How long an audience is counted beside the form; a page that is not written waits twice as long."""
LISTED = ("sent", "opened", "clicked")
"""Results that the list of broadcasts shows."""
STEERED = {
    "draft": ("cancel",),
    "scheduled": ("pause", "cancel"),
    "resolving": ("pause", "cancel"),
    "sending": ("pause", "cancel"),
    "paused": ("resume", "cancel"),
    "failed": ("resume", "cancel"),
}
"""What can be done with a broadcast in each state."""
NAMED = {"holdout": "control group", "all": "everybody", "rest": "get the winner"}
"""What screens call the arms that nobody has declared."""
SKIPPED = {
    "no_address": "no address",
    "invalid_address": "the address is none",
    "unsubscribed": "unsubscribed",
    "opted_out": "has not consented",
    "unconfirmed": "has not confirmed the consent",
    "suppressed:manual": "suppressed by hand",
    "suppressed:bounce": "bounced before",
    "suppressed:complaint": "complained before",
    "suppressed:import": "suppressed by an import",
    "frequency_cap": "too many mails lately",
    "duplicate": "somebody else with this address got it",
}
"""Reasons for which a mail was skipped, in words."""


def _listed(asking: Asking) -> Mapping[str, Any]:
    """What the list says of one: some of its results."""
    counters = asking.ask_or({"counts": None}, "feedback_counters", broadcast=asking.path["id"])
    return {"counts": counters["counts"], "counted": LISTED}


def _load(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("broadcasts_list", cursor=asking.query.get("cursor"), limit=PAGE)
    calls = len(asking.calls)
    templates = asking.ask_or({"templates": []}, "mail_templates")["templates"]
    del asking.calls[calls:]  # only what stands for a variable in a subject is taken from there
    usual = {
        template["name"]: {variable["name"]: variable["default"] for variable in template["variables"]}
        for template in templates
    }
    subjects = {
        listed["id"]: _readable(
            listed["subject"],
            {**usual.get(listed["broadcast"]["template"], {}), **(listed["broadcast"].get("variables") or {})},
        )
        for listed in page["broadcasts"]
    }
    return {"page": page, "subjects": subjects}


def _readable(subject: str, variables: Mapping[str, Any]) -> str:
    """A subject with its variables filled in; what is different for each person is an ellipsis."""
    text = re.sub(r"\{%.*?%\}|\{#.*?#\}", "", subject)
    return re.sub(r"\{\{\s*([\w.]+)?.*?\}\}", lambda match: str(variables.get(match[1] or "") or "…"), text)


def _begun(asking: Asking) -> tuple[BroadcastForm, Mapping[str, Any] | None]:
    """The broadcast that somebody goes on with, as a form and as parameters: the draft of the address, one to make
    another of, or a new one; of what was sent the form alone. Raises `Conflict` for one that is no draft any more."""
    if "_csrf" in asking.query:
        return broadcast_form.posted(asking), None
    id = asking.path.get("id", "")
    broadcast: Mapping[str, Any] = {"audience": {"segment": asking.query.get("segment", "")}}
    if like := id or asking.query.get("like", ""):
        shown = asking.ask("broadcasts_show", id=like)
        broadcast = shown["broadcast"]
        if id and shown["state"] != "draft":
            hint = "Duplicate it to send something like it."
            raise Conflict(f"broadcast {id!r} is {shown['state']}; only a draft can be changed", hint=hint)
    return broadcast_form.begun(broadcast, id), broadcast


def _form(asking: Asking) -> Mapping[str, Any]:
    """The form, and on a whole page what stands beside it; the count is loaded later, unless there is no script."""
    offered = broadcast_form.offered(asking)
    form, given = _begun(asking)
    name = form.values.get("template") or next((template["name"] for template in offered["templates"]), "")
    beside: Mapping[str, Any] = {}
    if name and not asking.query.get("part"):
        beside = {**_beside(asking), **_count(asking)} if given is None else _looks(asking, {"template": name, **given})
    return {
        **offered,
        **shown_conditions(asking, form.conditions, broadcast_form.KEY, condition_form.missing(form.conditions)),
        **beside,
        "values": form.values,
        "arms": form.arms,
        "arms_most": broadcast_form.ARMS_MAX,
        "beyond": form.beyond,
        "focus": form.focus,
        "chosen": next((template for template in offered["templates"] if template["name"] == name), None),
        "id": asking.path.get("id", ""),
        "condition": tree_of_conditions(form.beyond.get("audience.when")),
    }


def _beside(asking: Asking) -> Mapping[str, Any]:
    """How the mail looks, as far as the form is filled in."""
    try:
        return _looks(asking, broadcast_form.parameters(asking))
    except ThreadlineError as error:
        return {"problem": str(error)}


def _looks(asking: Asking, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"mails": [*broadcast_form.mails(asking, given)]}


def _count(asking: Asking) -> Mapping[str, Any]:
    """Who would get it, as far as the form is filled in."""
    try:
        given = broadcast_form.parameters(asking)
        return {
            "count": _counted(asking, given, COUNT_SECONDS),
            "shares": broadcast_form.shares(given),
            "named": NAMED,
            "skipped": SKIPPED,
        }
    except ThreadlineError as error:
        return {"count_problem": str(error)}


def _counted(asking: Asking, broadcast: Mapping[str, Any], seconds: float) -> Any:
    asked = {name: broadcast.get(name) for name in ("audience", "template", "topic")}
    return asking.ask("broadcasts_audience", **asked, seconds=seconds)


def _one(asking: Asking) -> Mapping[str, Any]:
    shown = asking.ask("broadcasts_show", id=asking.path["id"])
    broadcast = shown["broadcast"]
    return {
        "it": shown,
        "steered": STEERED.get(shown["state"], ()),
        "named": NAMED,
        "created": dict(_created(broadcast)),
        "shares": dict(broadcast_form.shares(broadcast)),
        "condition": tree_of_conditions((broadcast.get("audience") or {}).get("when")),
        "sample": _sample(asking) if shown["state"] == "draft" else "",
    }


def _sample(asking: Asking) -> str:
    """Somebody as whom a test is filled in: whoever was active last."""
    calls = len(asking.calls)
    people = asking.ask_or({"people": []}, "people_find", limit=1)["people"]
    del asking.calls[calls:]  # it fills a field; what the page shows is the broadcast
    return next((str(name) for person in people for name in person["identifiers"]), "")


def _created(broadcast: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a broadcast was created with, but for its variants, in words."""
    audience = broadcast.get("audience") or {}
    yield "Template", broadcast["template"]
    for name in ("subject", "sender", "topic"):
        if name in broadcast:
            yield name.capitalize(), broadcast[name]
    for name, given in (broadcast.get("variables") or {}).items():
        yield f"Variable {name}", given
    if not audience:
        yield "To", "everybody"
    if "segment" in audience:
        yield "Segment", audience["segment"]
    if "tags" in audience:
        yield "Tags", ", ".join(audience["tags"])
    for name, value in sorted((audience.get("attributes") or {}).items()):
        yield label(name), value
    if "at" in broadcast:
        zone = broadcast.get("zone", "UTC")
        own = "the recipient's own time" if broadcast.get("in_zone_of_recipient") else zone
        yield "At", f"{broadcast['at'].replace('T', ' ')}, {own}"
    if "per_hour" in broadcast:
        yield "At most", f"{counted(broadcast['per_hour'], 'person')} an hour"
    if "holdout" in broadcast and "arms" not in broadcast:  # else it is in the table of variants
        yield "Control group", f"{broadcast['holdout']:.1%} get nothing"
    if winner := broadcast.get("winner"):
        by = f"events “{event_name(winner['event'])}”" if winner.get("event") else winner.get("metric", "clicks")
        yield "Winner", f"by {by}, {winner['after']} after the first {winner['share']:.0%}"


def _preview(asking: Asking) -> Mapping[str, Any]:
    """Who would get a draft, and the button that starts it, which names how many these are."""
    shown = asking.ask("broadcasts_show", id=asking.path["id"])
    broadcast = shown["broadcast"]
    return {
        "it": shown,
        "count": _counted(asking, broadcast, 2 * COUNT_SECONDS),
        "shares": broadcast_form.shares(broadcast),
        "named": NAMED,
        "skipped": SKIPPED,
        "at": dict(_created(broadcast)).get("At", ""),
    }


def _domain(asking: Asking) -> Mapping[str, Any]:
    sender = asking.ask("broadcasts_show", id=asking.path["id"])["sender"]
    return {"domains": asking.ask("mail_domains", sender=sender)["domains"]}


def _results(asking: Asking) -> Mapping[str, Any]:
    counters = asking.ask("feedback_counters", broadcast=asking.path["id"])
    recipients = asking.ask("broadcasts_recipients", id=asking.path["id"], cursor=asking.query.get("cursor"), limit=20)
    counts = counters["counts"]
    # Bounces come from the provider's answer as well. Whoever reports deliveries, opens or the like reports them all.
    reports = any(counts[outcome] for outcome in MAIL_COUNTS if outcome not in ("sent", "bounced"))
    return {
        "counters": counters,
        "counted": MAIL_COUNTS,
        "recipients": recipients,
        "id": asking.path["id"],
        "named": NAMED,
        "reported": {outcome: reports or outcome == "sent" or bool(counts[outcome]) for outcome in MAIL_COUNTS},
        "skipped": SKIPPED,
    }


_FORM_PARTS = {
    "panel": Part("broadcast_panel.html", _form),
    "checked": Part("broadcast_checked.html", _beside),
    "count": Part("broadcast_count.html", _count),
}
SCREENS = (
    Screen(
        name="broadcasts",
        path="/broadcasts",
        title="Broadcasts",
        template="broadcasts.html",
        load=_load,
        operation="broadcasts_list",
        summary="One mail to everybody of an audience. Nobody ever gets it twice.",
        area="Messages",
        order=32,
    ),
    Screen(
        name="broadcast_new",
        path="/broadcasts/new",
        title="New broadcast",
        template="broadcast_new.html",
        load=_form,
        operation="broadcasts_create",
        needs=("mail_templates",),
        summary="It becomes a draft first. Nothing is sent before you start it.",
        in_navigation=False,
        within="broadcasts",
        parts=_FORM_PARTS,
        is_form=True,
    ),
    Screen(
        name="broadcast_edit",
        path="/broadcasts/{id}/edit",
        title="Edit the draft",
        template="broadcast_new.html",
        load=_form,
        operation="broadcasts_edit",
        needs=("mail_templates",),
        in_navigation=False,
        within="broadcasts",
        parts=_FORM_PARTS,
        is_form=True,
    ),
    Screen(
        name="broadcast",
        path="/broadcasts/{id}",
        title="Broadcast",
        template="broadcast.html",
        load=_one,
        operation="broadcasts_show",
        in_navigation=False,
        within="broadcasts",
        parts={
            "preview": Part("broadcast_preview.html", _preview),
            "domain": Part("broadcast_domain.html", _domain),
            "results": Part("broadcast_results.html", _results),
            "state": Part("broadcast_state.html", _one),
            "listed": Part("broadcast_listed.html", _listed),
        },
    ),
)
