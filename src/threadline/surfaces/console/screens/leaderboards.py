"""Leaderboards: who is ahead, now or in any past period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.screens.drafts import proposals

SHOWN = 50
FIRST = 3
"""Places that a tile shows."""


def _load(asking: Asking) -> Mapping[str, Any]:
    return {**asking.ask("leaderboards_list"), "proposals": proposals(asking, "leaderboards")}


def _one(asking: Asking) -> Mapping[str, Any]:
    known = {board["name"]: board for board in asking.ask("leaderboards_list")["boards"]}
    return {"declared": known.get(asking.path["name"]), **_top(asking)}


def _top(asking: Asking) -> Mapping[str, Any]:
    asked = {name: asking.query.get(name) for name in ("period", "at", "scope")}
    return {"board": asking.ask("leaderboards_top", name=asking.path["name"], **asked, limit=SHOWN)}


def _first(asking: Asking) -> Mapping[str, Any]:
    """Who is ahead on one of the boards, for its tile."""
    try:
        return {"board": asking.ask("leaderboards_top", name=asking.query.get("name", ""), limit=FIRST)}
    except ThreadlineError as error:  # such as a board that needs a scope
        return {"board": {"places": []}, "problem": str(error)}


SCREENS = (
    Screen(
        name="leaderboards",
        path="/leaderboards",
        title="Leaderboards",
        template="leaderboards.html",
        load=_load,
        operation="leaderboards_list",
        summary="Ranks of people, now or in any past period.",
        area="Rules and features",
        order=26,
        parts={"first": Part("leaderboard_first.html", _first)},
    ),
    Screen(
        name="leaderboard",
        path="/leaderboards/{name}",
        title="Leaderboard",
        template="leaderboard.html",
        load=_one,
        operation="leaderboards_top",
        in_navigation=False,
        within="leaderboards",
        parts={"top": Part("leaderboard_top.html", _top)},
    ),
)
