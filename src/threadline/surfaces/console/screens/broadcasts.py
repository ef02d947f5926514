"""Broadcasts: a mail to everybody of an audience, once: written in steps, tried on the audience, followed, measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.mail_counts import COUNTED
from threadline.surfaces.console.screen import Part, Screen

PAGE = 30
ARMS = 4
"""Variants that the form has room for; the API takes ten."""
STEERED = {
    "draft": ("start", "cancel"), "scheduled": ("pause", "cancel"), "resolving": ("pause", "cancel"),
    "sending": ("pause", "cancel"), "paused": ("resume", "cancel"), "failed": ("resume", "cancel"),
}  # fmt: skip
"""What can be done with a broadcast in each state."""


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"page": asking.ask("broadcasts_list", cursor=asking.query.get("cursor"), limit=PAGE)}


def _new(asking: Asking) -> Mapping[str, Any]:
    return {
        "templates": asking.ask("mail_templates")["templates"],
        "segments": [each["name"] for each in asking.ask("segments_list")["segments"]],
        "topics": [each["name"] for each in asking.ask_or({}, "consent_topics").get("topics", [])],
        "arms": range(ARMS),
    }


def _one(asking: Asking) -> Mapping[str, Any]:
    shown = asking.ask("broadcasts_show", id=asking.path["id"])
    return {"it": shown, "steered": STEERED.get(shown["state"], ())}


def _preview(asking: Asking) -> Mapping[str, Any]:
    return {"preview": asking.ask("broadcasts_preview", id=asking.path["id"])}


def _results(asking: Asking) -> Mapping[str, Any]:
    counters = asking.ask("feedback_counters", broadcast=asking.path["id"])
    recipients = asking.ask("broadcasts_recipients", id=asking.path["id"], cursor=asking.query.get("cursor"), limit=20)
    return {"counters": counters, "counted": COUNTED, "recipients": recipients, "id": asking.path["id"]}


SCREENS = (
    Screen(
        name="broadcasts", path="/broadcasts", title="Broadcasts", template="broadcasts.html", load=_load,
        operation="broadcasts_list", summary="One mail to everybody of an audience. Nobody ever gets it twice.",
        area="Reach", order=32,
    ),
    Screen(
        name="broadcast_new", path="/broadcasts/new", title="New broadcast", template="broadcast_new.html", load=_new,
        operation="broadcasts_create", summary="It becomes a draft: you see who would get it before anything leaves.",
        in_navigation=False, within="broadcasts",
    ),
    Screen(
        name="broadcast", path="/broadcasts/{id}", title="Broadcast", template="broadcast.html", load=_one,
        operation="broadcasts_show", in_navigation=False, within="broadcasts",
        parts={
            "preview": Part("broadcast_preview.html", _preview), "results": Part("broadcast_results.html", _results),
            "state": Part("broadcast_state.html", _one),
        },
    ),
)  # fmt: skip
