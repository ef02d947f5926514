"""What is declared in sections that have no page of their own: each definition by name, and the form that writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.decide.drafts.sections import by_hand_of, keys_of, members_of, names_of
from threadline.kernel.screen import Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.formats import label
from threadline.surfaces.console.screens.drafts import described, form_path, kind_of, proposals


class Listed(NamedTuple):
    """A section on this page."""

    section: str
    title: str
    about: str
    button: str
    kind: str = ""
    """The kind of its names, where some of them ship."""


LISTED = (
    Listed(
        "points",
        "Points",
        "What earns points, what multiplies them, and when they expire.",
        "Change what earns points",
    ),
    Listed(
        "streaks",
        "Streaks",
        "Days, weeks or months in a row in which somebody came back.",
        "Write a streak",
        "streak",
    ),
    Listed(
        "interests",
        "Interests",
        "Which events show an interest, and how it becomes a score.",
        "Change how interests are scored",
    ),
    Listed(
        "consent.topics",
        "Topics",
        "What people subscribe to, as the page of their preferences has it.",
        "Write a topic",
        "topic",
    ),
    Listed(
        "mail.senders",
        "Senders",
        "Who mails are from.",
        "Write a sender",
        "sender",
    ),
)


HAVE_A_PAGE = frozenset({"features", "journeys", "leaderboards", "mail.templates", "segments"})
"""Sections that are listed on a page of their own."""


def _load(asking: Asking) -> Mapping[str, Any]:
    sections = by_hand_of(asking.engine.catalogue)
    first = [listed for listed in LISTED if listed.section in sections]
    apart = HAVE_A_PAGE.union(listed.section for listed in first)
    rest = [_of_schema(asking, section) for section in sections if section not in apart]
    return {"sections": [_shown(asking, listed) for listed in (*first, *rest)]}


def _of_schema(asking: Asking, section: str) -> Listed:
    """A section of which nothing is known but its schema, such as that of a plug-in."""
    button = "Write one" if section in names_of(asking.engine.catalogue) else "Change it"
    return Listed(section, label(section), described(asking, section), button)


def _shown(asking: Asking, listed: Listed) -> dict[str, Any]:
    """A section with its definitions: each by name, and where it stands, so that a form can change it."""
    catalogue, kind = asking.engine.catalogue, kind_of(asking, listed.section)
    names: Sequence[str] = [listed.section]
    if kind.is_member:
        names = members_of(catalogue, listed.section)
    elif not kind.is_once:
        names = sorted(in_force(catalogue).names_in(*listed.section.split(".")) or ())
        shipped = catalogue.names.offered(listed.kind, asking.engine, asking.session.workspace) if listed.kind else ()
        names = [*names, *(name for name in shipped if name not in names)]
    written = {name: in_force(catalogue).written(keys_of(catalogue, listed.section, name)) for name in names}
    return {
        **listed._asdict(),
        "path": form_path(listed.section),
        "is_once": kind.is_once,
        "is_member": kind.is_member,
        "names": [
            {"name": name, "is_written": place is not None, "file": "" if place is None else place.file}
            for name, place in written.items()
        ],
        "proposals": proposals(asking, listed.section),
    }


SCREENS = (
    Screen(
        name="declared",
        path="/declared",
        title="Other definitions",
        template="declared.html",
        load=_load,
        operation="definitions_proposals",
        summary="Points, streaks, topics, senders and every other section that can be declared: each as a form.",
        area="Rules and features",
        order=28,
    ),
)
