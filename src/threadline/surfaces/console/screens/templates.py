"""Templates as they are written and as they look, what became of sent mail, the development inbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.capabilities.reach.feedback.events import MAIL_SENT
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.formats import MAIL_COUNTS
from threadline.surfaces.console.screens.drafts import proposals
from threadline.surfaces.console.screens.journeys import step_labels

PAGE = 40
_NOTHING = "<!doctype html><title>No HTML</title><p>This mail has no HTML part.</p>"


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"templates": asking.ask("mail_templates")["templates"], "proposals": proposals(asking, "mail.templates")}


def _one(asking: Asking) -> Mapping[str, Any]:
    name, version = asking.path["name"], asking.query.get("version")
    declared = {template["name"]: template for template in asking.ask("mail_templates")["templates"]}
    return {"it": asking.ask("mail_template", template=name, version=version), "declared": declared.get(name)}


def _filled(asking: Asking) -> Mapping[str, Any]:
    try:
        return {"mail": _mail(asking)}
    except ThreadlineError as error:
        return {"problem": str(error), "hint": error.hint}


def _mail(asking: Asking) -> Mapping[str, Any]:
    person, version = asking.query.get("person"), asking.query.get("version")
    given = {name[2:]: value for name, value in asking.query.items() if name.startswith("v.") and value}
    answer: Mapping[str, Any] = asking.ask(
        "mail_preview", template=asking.path["name"], person=person, version=version, variables=given or None
    )
    return answer


def _html(asking: Asking) -> Mapping[str, Any]:
    return {"document": _mail(asking)["html"] or _NOTHING}


def _counters(asking: Asking) -> Mapping[str, Any]:
    return {"counters": asking.ask("feedback_counters", template=asking.path["name"]), "counted": MAIL_COUNTS}


def _users(asking: Asking) -> Mapping[str, Any]:
    """What sends mails of a template: journeys, and what stands in the store."""
    name = asking.path["name"]
    journeys = asking.ask("journeys_list")["journeys"] if asking.may("journeys_list") else []
    if asking.may("definitions_uses"):
        stored = asking.ask("definitions_uses", section="mail.templates", name=name)["uses"]
    else:
        stored = []
    return {
        "journeys": [journey["name"] for journey in journeys if name in journey["templates"]],
        "others": [user for entry in stored for user in entry["users"]],
    }


def _mails(asking: Asking) -> Mapping[str, Any]:
    asked = {name: asking.query.get(name) for name in ("template", "journey", "broadcast", "type", "start", "stop")}
    if not any(asked[name] for name in ("template", "journey", "broadcast")):
        return {"page": _newest(asking), "templates": asking.ask("mail_templates")["templates"]}
    page = asking.ask("feedback_events", **asked, cursor=asking.query.get("cursor"), limit=PAGE)
    labels = step_labels(asking, asked["journey"]) if asked["journey"] else {}
    return {"page": page, "templates": asking.ask("mail_templates")["templates"], "labels": labels}


def _newest(asking: Asking) -> Mapping[str, Any]:
    """The mails that were sent last, from the search index; none where there is no such index."""
    asked = {name: asking.query.get(name) for name in ("start", "stop", "cursor")}
    try:
        page = asking.ask("search_find", type=MAIL_SENT, **asked, limit=PAGE)
    except ThreadlineError as error:
        return {"events": [], "next": "", "problem": str(error), "hint": error.hint}
    members = ("message", "address", "template", "step", "arm", "journey", "broadcast")
    events = [
        {
            "id": event["id"],
            "type": event["type"],
            "at": event["occurred_at"],
            "person": event["person"],
            **{name: event["properties"].get(name, "") for name in members},
        }
        for event in (hit["event"] for hit in page["hits"])
    ]
    return {"events": events, "next": page["next"]}


def _inbox(asking: Asking) -> Mapping[str, Any]:
    to, cursor = asking.query.get("to"), asking.query.get("cursor")
    # Where mail really leaves there is no such inbox, and the page says how to have one.
    return {"page": asking.ask_or({"messages": [], "next": ""}, "inbox_list", to=to, cursor=cursor, limit=PAGE)}


def _inbox_one(asking: Asking) -> Mapping[str, Any]:
    return {"mail": asking.ask("inbox_show", id=asking.path["id"])}


def _inbox_html(asking: Asking) -> Mapping[str, Any]:
    return {"document": asking.ask("inbox_show", id=asking.path["id"])["html"] or _NOTHING}


SCREENS = (
    Screen(
        name="templates",
        path="/templates",
        title="Templates",
        template="templates.html",
        load=_load,
        operation="mail_templates",
        summary="What mails say and how they look, filled in for anybody.",
        area="Messages",
        order=34,
    ),
    Screen(
        name="template",
        path="/templates/{name}",
        title="Template",
        template="template.html",
        load=_one,
        operation="mail_preview",
        in_navigation=False,
        within="templates",
        parts={
            "filled": Part("template_filled.html", _filled),
            "html": Part("", _html, is_document=True),
            "counters": Part("template_counters.html", _counters),
            "users": Part("template_users.html", _users),
        },
    ),
    Screen(
        name="mails",
        path="/mails",
        title="Sent mail",
        template="mails.html",
        load=_mails,
        operation="feedback_events",
        needs=("mail_templates",),
        summary="The last mails, and the results of those of a template, a journey or a broadcast.",
        area="Messages",
        order=36,
        parts={"found": Part("mails_found.html", _mails)},
    ),
    Screen(
        name="inbox",
        path="/inbox",
        title="Development inbox",
        template="inbox.html",
        load=_inbox,
        operation="inbox_list",
        summary="Mail as it was sent while nothing may leave this machine.",
        area="Messages",
        order=40,
    ),
    Screen(
        name="inbox_one",
        path="/inbox/{id}",
        title="Mail",
        template="inbox_one.html",
        load=_inbox_one,
        operation="inbox_show",
        in_navigation=False,
        within="inbox",
        parts={"html": Part("", _inbox_html, is_document=True)},
    ),
)
