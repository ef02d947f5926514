"""What is made by hand: its versions, what is different between two, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from threadline.kernel.screen import Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.screens.drafts import form_path

PAGE = 30
WORDS = {
    "consent.topics": "topic",
    "features": "feature",
    "interests": "interests",
    "journeys": "journey",
    "leaderboards": "leaderboard",
    "mail.senders": "sender",
    "mail.templates": "mail template",
    "points": "points",
    "segments": "segment",
    "streaks": "streak",
}
"""What one of a section is called."""


def _worded(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**change, "what": WORDS.get(change["section"], change["section"])} for change in changes]


def _by_hand(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("definitions_versions", before=asking.query.get("before"), limit=PAGE)
    versions = [{**version, "changes": _worded(version["changes"])} for version in page["versions"]]
    made: list[dict[str, Any]] = []
    if page["in_force"]:
        newest = asking.ask("definitions_version", version=page["in_force"], against=0)
        used = asking.ask("definitions_uses")["uses"] if asking.may("definitions_delete") else []
        users = {(entry["section"], entry["name"]): entry["users"] for entry in used}
        made = [
            {
                **entry,
                "path": form_path(entry["section"]),
                "users": users.get((entry["section"], entry["name"]), []),
            }
            for entry in _worded(newest["changes"])
        ]
    return {"page": page, "versions": versions, "made": made}


def _version(asking: Asking) -> Mapping[str, Any]:
    number = asking.path["version"]
    shown = asking.ask("definitions_version", version=number, against=asking.query.get("against"))
    newest = asking.ask("definitions_versions", limit=1)["in_force"]
    back: Mapping[str, Any] | None = None
    if shown["version"]["number"] != newest and asking.may("definitions_go_back"):
        back = asking.ask("definitions_preview_go_back", version=number)
        back = {**back, "changes": _worded(back["changes"]), "difference": _lines(back["difference"])}
    return {
        "shown": {**shown, "changes": _worded(shown["changes"]), "difference": _lines(shown["difference"])},
        "newest": newest,
        "back": back,
    }


def _lines(difference: Iterable[str]) -> list[dict[str, str]]:
    """The lines of a difference, each with its mark; without the two that name the versions."""
    return [{"mark": line[:1], "text": line} for line in difference if not line.startswith(("--- ", "+++ "))]


SCREENS = (
    Screen(
        name="by_hand",
        path="/definitions",
        title="Made by hand",
        template="by_hand.html",
        load=_by_hand,
        operation="definitions_versions",
        summary="Definitions that were put in force here: who changed what, and the way back.",
        area="Rules and features",
        order=26,
    ),
    Screen(
        name="by_hand_version",
        path="/definitions/versions/{version}",
        title="Version",
        template="by_hand_version.html",
        load=_version,
        operation="definitions_version",
        in_navigation=False,
        within="by_hand",
    ),
)
