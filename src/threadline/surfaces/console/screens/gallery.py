"""The gallery: journeys that are installed whole, each drawn, with its mails and what it would have done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import NotFound, ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.flowchart import drawn
from threadline.surfaces.console.screens.by_hand import WORDS
from threadline.surfaces.console.screens.journeys import with_steps

PREVIEW_SECONDS = 4


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"entries": asking.ask("gallery_list")["entries"]}


def _one(asking: Asking) -> Mapping[str, Any]:
    it = asking.ask("gallery_show", name=asking.path["name"])
    pieces = [{**piece, "what": WORDS[piece["section"]]} for piece in it["pieces"]]
    return {
        "it": it,
        "picture": drawn(it, None),
        "is_gallery": True,
        "is_installed": all(piece["state"] == "same" for piece in pieces),
        "pieces": pieces,
        "taken": [piece for piece in pieces if piece["state"] == "taken"],
    }


def _asked(asking: Asking) -> dict[str, Any]:
    """Which entry, under the names with which it can be looked at whatever is there."""
    return {"name": asking.path["name"], "suffix": asking.query.get("suffix", "")}


def _tried(asking: Asking) -> Mapping[str, Any]:
    try:
        answer = asking.ask("gallery_preview", **_asked(asking), seconds=PREVIEW_SECONDS)
    except ThreadlineError as error:
        return {"preview_problem": str(error)}
    steps = asking.ask("gallery_show", name=asking.path["name"])["steps"]
    return {"preview": with_steps(answer, {step["step"]: {"does": step["label"]} for step in steps})}


def _mails(asking: Asking) -> Mapping[str, Any]:
    try:
        mails = asking.ask("gallery_mails", **_asked(asking))["mails"]
    except ThreadlineError as error:
        return {"problem": str(error), "hint": error.hint}
    return {"mails": mails}


def _html(asking: Asking) -> Mapping[str, Any]:
    template = asking.query.get("template", "")
    for mail in asking.ask("gallery_mails", **_asked(asking))["mails"]:
        if mail["template"] == template:
            return {"document": mail["html"]}
    raise NotFound(f"it has no template {template[:64]!r}")


SCREENS = (
    Screen(
        name="gallery",
        path="/gallery",
        title="Gallery",
        template="gallery.html",
        load=_load,
        operation="gallery_list",
        needs=("journeys_list",),
        summary="Journeys with their mails, to be installed and then changed.",
        in_navigation=False,
        within="journeys",
    ),
    Screen(
        name="gallery_entry",
        path="/gallery/{name}",
        title="Gallery",
        template="gallery_entry.html",
        load=_one,
        operation="gallery_show",
        in_navigation=False,
        within="journeys",
        parts={
            "tried": Part("journey_tried.html", _tried),
            "mails": Part("gallery_mails.html", _mails),
            "html": Part("", _html, is_document=True),
        },
    ),
)
