"""Broadcasts: a mail to everybody of an audience, once: written in steps, tried on the audience, followed, measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.formats import MAIL_COUNTS, label
from threadline.surfaces.console.sentences import event_name
from threadline.surfaces.console.trace import tree_of_conditions

PAGE = 30
ARMS = 4
"""Variants that the form has room for; the API takes ten."""
STEERED = {
    "draft": ("start", "cancel"),
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
    "frequency_cap": "too many mails lately",
    "duplicate": "somebody else with this address got it",
}
"""Reasons for which a mail was skipped, in words."""


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"page": asking.ask("broadcasts_list", cursor=asking.query.get("cursor"), limit=PAGE)}


def _new(asking: Asking) -> Mapping[str, Any]:
    return {
        "templates": asking.ask("mail_templates")["templates"],
        "segments": [segment["name"] for segment in asking.ask("segments_list")["segments"]],
        "topics": [topic["name"] for topic in asking.ask_or({}, "consent_topics").get("topics", [])],
        "arms": range(ARMS),
    }


def _one(asking: Asking) -> Mapping[str, Any]:
    shown = asking.ask("broadcasts_show", id=asking.path["id"])
    broadcast = shown["broadcast"]
    weights = {arm["name"]: arm.get("weight", 1) for arm in broadcast.get("arms", ())}
    share = (1 - broadcast.get("holdout", 0)) / max(sum(weights.values()), 1)
    return {
        "it": shown,
        "steered": STEERED.get(shown["state"], ()),
        "named": NAMED,
        "created": dict(_created(broadcast)),
        "shares": {name: weight * share for name, weight in weights.items()},
        "condition": tree_of_conditions((broadcast.get("audience") or {}).get("when")),
    }


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
    if "holdout" in broadcast and "arms" not in broadcast:  # else it is in the table of variants
        yield "Control group", f"{broadcast['holdout']:.1%} get nothing"
    if winner := broadcast.get("winner"):
        by = f"events “{event_name(winner['event'])}”" if winner.get("event") else winner.get("metric", "clicks")
        yield "Winner", f"by {by}, {winner['after']} after the first {winner['share']:.0%}"


def _preview(asking: Asking) -> Mapping[str, Any]:
    return {"preview": asking.ask("broadcasts_preview", id=asking.path["id"]), "named": NAMED}


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
        load=_new,
        operation="broadcasts_create",
        summary="It becomes a draft: you see who would get it before anything leaves.",
        in_navigation=False,
        within="broadcasts",
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
            "results": Part("broadcast_results.html", _results),
            "state": Part("broadcast_state.html", _one),
        },
    ),
)
