"""Journeys: drawn, with the people at each step, and who is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.flowchart import drawn
from threadline.surfaces.console.formats import MAIL_COUNTS
from threadline.surfaces.console.screens.drafts import proposals

PAGE = 30


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"journeys": asking.ask("journeys_list")["journeys"], "proposals": proposals(asking, "journeys")}


def _one(asking: Asking) -> Mapping[str, Any]:
    it = asking.ask("journeys_show", name=asking.path["name"])
    return {"it": it, "picture": drawn(it, None)}


def _way(asking: Asking) -> Mapping[str, Any]:
    it = asking.ask("journeys_show", name=asking.path["name"])
    try:
        flow = asking.ask("analytics_journey", journey=it["name"], start=asking.query.get("start"))
    except ThreadlineError as error:  # the way can be drawn without numbers
        return {"it": it, "picture": drawn(it, None), "problem": str(error), "hint": error.hint}
    labels = {step["step"]: step["label"] for step in it["steps"]}
    return {"it": it, "picture": drawn(it, flow), "flow": flow, "labels": labels}


def _people(asking: Asking) -> Mapping[str, Any]:
    step, cursor = asking.query.get("step"), asking.query.get("cursor")
    page = asking.ask("journeys_people", name=asking.path["name"], step=step, cursor=cursor, limit=PAGE)
    return {"page": page, "label": step_labels(asking, asking.path["name"]).get(step, step) if step else ""}


def _counters(asking: Asking) -> Mapping[str, Any]:
    counters = asking.ask("feedback_counters", journey=asking.path["name"])
    return {"counters": counters, "counted": MAIL_COUNTS, "labels": step_labels(asking, asking.path["name"])}


def step_labels(asking: Asking, journey: str) -> dict[str, str]:
    """Id of each step of a journey -> what it is called."""
    shown = asking.ask_or({"steps": []}, "journeys_show", name=journey)
    return {step["step"]: step["label"] for step in shown["steps"]}


def with_steps(preview: Mapping[str, Any], steps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What a journey would have done, its steps in the order in which they are drawn, each with what is known of it;
    then what is sent on events, which no step draws."""
    counted = {step["step"]: {"does": f"send {step['step']}", **step} for step in preview["steps"]}
    ids = dict.fromkeys([*(id for id in steps if id in counted), *counted])
    return {**preview, "steps": [{**counted[id], **steps.get(id, {})} for id in ids]}


SCREENS = (
    Screen(
        name="journeys",
        path="/journeys",
        title="Journeys",
        template="journeys.html",
        load=_load,
        operation="journeys_list",
        summary="What people are taken through, one mail at a time, each sent once.",
        area="Messages",
        order=30,
    ),
    Screen(
        name="journey",
        path="/journeys/{name}",
        title="Journey",
        template="journey.html",
        load=_one,
        operation="journeys_show",
        in_navigation=False,
        within="journeys",
        parts={
            "way": Part("journey_way.html", _way),
            "people": Part("journey_people.html", _people),
            "counters": Part("journey_counters.html", _counters),
        },
    ),
)
