"""What decides: rules with their versions, what another version would have changed, segments, features."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT
from threadline.kernel.calendar import Calendar, day_text
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.kernel.time import format_time
from threadline.surfaces.console.action_form import worded
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.screens.drafts import proposals, rule_text
from threadline.surfaces.console.trace import moved, question, tree_of_conditions

PAGE = 30
DAYS = 90
"""Of which the size of a segment is drawn."""
STEPS = {"draft": ("tested",), "tested": ("shadow",), "shadow": ("retire",), "active": ("retire",)}
"""What can be done with a version in each state; it is activated at its gate."""
NO_MATCH = "NoMatch"
"""The outcome of a rule that says nothing."""
NEXT = {"draft", "tested", "shadow", "retired"}
"""States of a version that may become the active one."""


def _rules(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("rules_list", state=asking.query.get("state"), cursor=asking.query.get("cursor"), limit=PAGE)
    return {"page": page, "sets": asking.ask("rule_sets_list")["rule_sets"]}


def _rule(asking: Asking) -> Mapping[str, Any]:
    rule = asking.ask("rules_show", id=asking.path["id"], version=asking.query.get("version"))
    versions = asking.ask_or({"versions": []}, "rules_versions", id=rule["id"], limit=PAGE)["versions"]
    known = {version["version"]: version for version in versions}
    return {
        "rule": rule,
        "versions": versions,
        "tree": tree_of_conditions(rule["content"].get("conditions")),
        "may_become_active": not rule["declared"] and known.get(rule["version"], rule)["state"] in NEXT,
        "written": rule_text(rule["content"]),
        "actions": worded(rule["content"].get("actions")),
        "other": asking.query.get("with"),
        "steps": () if rule["declared"] else STEPS.get(known.get(rule["version"], rule)["state"], ()),
    }


def _difference(asking: Asking) -> Mapping[str, Any]:
    id, query = asking.path["id"], asking.query
    first = asking.ask("rules_show", id=id, version=query.get("with"))
    other = asking.ask("rules_show", id=id, version=query.get("version"))
    before, after = (
        json.dumps(rule_text(rule["content"]), indent=2, ensure_ascii=False).splitlines() for rule in (first, other)
    )
    lines = [line for line in difflib.ndiff(before, after) if not line.startswith("?")]
    return {"one": first["version"], "two": other["version"], "lines": [{"mark": e[0], "text": e[2:]} for e in lines]}


def _gate(asking: Asking) -> Mapping[str, Any]:
    """What the newest what-if of a version says, and whether it may be activated by it."""
    id, version = asking.path["id"], asking.query.get("version")
    rule = asking.ask("rules_show", id=id, version=version)
    if rule["declared"]:
        return {"rule": rule}
    gate = asking.ask("rules_gate", id=id, version=rule["version"])
    it = asking.ask_or(None, "what_if_status", id=gate["what_if"]) if gate["what_if"] else None
    return {"rule": rule, "gate": gate, "it": it, **_matrix((it or {}).get("matrix") or [])}


def _log(asking: Asking) -> Mapping[str, Any]:
    return {"log": asking.ask_or({"log": []}, "rules_log", id=asking.path["id"], limit=PAGE)["log"]}


def _shadow(asking: Asking) -> Mapping[str, Any]:
    try:
        return {"report": asking.ask("rules_shadow_report", id=asking.path["id"])}
    except ThreadlineError as error:
        return {"problem": str(error)}


def _what_ifs(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("what_if_list", cursor=asking.query.get("cursor"), limit=PAGE)
    rules = [rule["id"] for rule in asking.ask_or({}, "rules_list", limit=100).get("rules", [])]
    first, other = asking.query.get("one"), asking.query.get("other")
    compared = asking.ask("what_if_compare", one=first, other=other) if first and other else None
    return {"page": page, "rules": rules, "compared": compared}


def _what_if(asking: Asking) -> Mapping[str, Any]:
    it = asking.ask("what_if_status", id=asking.path["id"])
    matrix = it.get("matrix") or []
    return {
        "it": it,
        "question": question(it["changes"], it["old"], it["new"]),
        "values": [moved(value) for change in it["changes"] for value in change["values"]],
        "matched": {
            "newly": sum(cell["changed"] for cell in matrix if cell["old"] == NO_MATCH != cell["new"]),
            "no_longer": sum(cell["changed"] for cell in matrix if cell["new"] == NO_MATCH != cell["old"]),
        },
        "is_running": it["state"] in ("scheduled", "running"),
        **_matrix(matrix),
    }


def _matrix(cells: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Old outcomes down, new ones across: how many decisions went from one to the other, and some of the people."""
    outcomes = sorted({cell[side] or "nothing" for cell in cells for side in ("old", "new")})
    by_outcome = {(cell["old"] or "nothing", cell["new"] or "nothing"): cell for cell in cells}
    counts = {pair: cell.get("same", 0) + cell.get("changed", 0) for pair, cell in by_outcome.items()}
    most = max(counts.values(), default=1)
    rows = [
        {
            "old": old,
            "cells": [
                {
                    "new": new,
                    "count": counts.get((old, new), 0),
                    "stays": old == new,
                    "level": -(-4 * counts.get((old, new), 0) // most),
                    "changed": by_outcome.get((old, new), {}).get("changed", 0),
                    "people": by_outcome.get((old, new), {}).get("people", []),
                }
                for new in outcomes
            ],
        }
        for old in outcomes
    ]
    return {"outcomes": outcomes, "rows": rows}


def _sizes(asking: Asking) -> Mapping[str, Any]:
    answer, chart = asking.picture("segments_sizes", seconds=2)
    return {"answer": answer, "chart": chart}


def _segments(asking: Asking) -> Mapping[str, Any]:
    segments = asking.ask("segments_list")["segments"]
    trees = [{**segment, "tree": tree_of_conditions(segment["when"])} for segment in segments]
    return {"segments": trees, "proposals": proposals(asking, "segments")}


def _segment(asking: Asking) -> Mapping[str, Any]:
    name = asking.path["name"]
    members = asking.ask("segments_members", name=name, cursor=asking.query.get("cursor"), limit=PAGE)
    declared = {segment["name"]: segment for segment in asking.ask("segments_list")["segments"]}.get(name, {})
    return {"members": members, "it": declared, "tree": tree_of_conditions(declared.get("when"))}


def _size(asking: Asking) -> Mapping[str, Any]:
    """How many belong to it, and how many did at the end of each day, by who entered and left since."""
    name = asking.path["name"]
    (size,) = asking.ask("segments_sizes", name=name, seconds=1)["segments"]
    calendar = Calendar(asking.zone)
    today = calendar.day(asking.now)
    start = format_time(calendar.start(today - DAYS + 1))
    asked = {"where": json.dumps({"segment": name}), "start": start, "per": "day", "timezone": asking.zone}
    calls = len(asking.calls)
    try:
        entered, left = (
            {row["period"]: row["events"] for row in asking.ask("analytics_trend", event=event, **asked)["rows"]}
            for event in (SEGMENT_ENTERED, SEGMENT_LEFT)
        )
    except ThreadlineError as error:  # without analytics there is the size of today
        return {"size": size, "problem": str(error), "hint": error.hint}
    finally:
        del asking.calls[calls:]
    sizes = size["members"]
    points: list[Point] = []
    for day in (day_text(today - ago) for ago in range(DAYS)):
        note = f"{entered.get(day, 0):,} entered, {left.get(day, 0):,} left"
        points.append(Point(day, max(sizes, 0), is_uncertain=not points, note=note))
        sizes += left.get(day, 0) - entered.get(day, 0)
    chart = Chart(
        kind="lines",
        title="Size over time",
        x=Axis(title="Day"),
        y=Axis(title="People", unit="count"),
        series=(Series("", tuple(reversed(points))),),
        uncertain="The day is not over.",
        summary=f"{counted(round(points[-1].y or 0), 'person')} at the end of {points[-1].x}, {size['members']:,} now.",
    )
    return {"size": size, "chart": chart}


def _leaving(asking: Asking) -> Mapping[str, Any]:
    within = asking.query.get("within") or "30d"
    return {"leaving": asking.ask("segments_leaving", name=asking.path["name"], within=within), "within": within}


def _features(asking: Asking) -> Mapping[str, Any]:
    return {"features": asking.ask("features_list")["features"], "proposals": proposals(asking, "features")}


def _feature(asking: Asking) -> Mapping[str, Any]:
    declared = {feature["name"]: feature for feature in asking.ask("features_list")["features"]}
    return {"it": declared.get(asking.path["name"]), "name": asking.path["name"]}


def _top(asking: Asking) -> Mapping[str, Any]:
    return {"top": asking.ask("features_top", name=asking.path["name"], limit=25, lowest=asking.query.get("lowest"))}


def _spread(asking: Asking) -> Mapping[str, Any]:
    answer, chart = asking.picture("features_spread", name=asking.path["name"])
    return {"answer": answer, "chart": chart}


SCREENS = (
    Screen(
        name="rules",
        path="/rules",
        title="Rules",
        template="rules.html",
        load=_rules,
        operation="rules_list",
        summary="What is decided about people, by which version, and since when.",
        area="Rules and features",
        order=20,
    ),
    Screen(
        name="rule",
        path="/rules/{id}",
        title="Rule",
        template="rule.html",
        load=_rule,
        operation="rules_show",
        in_navigation=False,
        within="rules",
        parts={
            "difference": Part("rule_difference.html", _difference),
            "log": Part("rule_log.html", _log),
            "gate": Part("rule_gate.html", _gate),
            "shadow": Part("rule_shadow.html", _shadow),
        },
    ),
    Screen(
        name="what_ifs",
        path="/what-if",
        title="What if",
        template="what_ifs.html",
        load=_what_ifs,
        operation="what_if_list",
        summary="What another rule would have decided, on the history as it was.",
        area="Rules and features",
        order=22,
    ),
    Screen(
        name="what_if",
        path="/what-if/{id}",
        title="What if",
        template="what_if.html",
        load=_what_if,
        operation="what_if_status",
        in_navigation=False,
        within="what_ifs",
        parts={"state": Part("what_if_state.html", _what_if)},
    ),
    Screen(
        name="features",
        path="/features",
        title="Features",
        template="features.html",
        load=_features,
        operation="features_list",
        summary="Numbers about people, fresh to the second.",
        area="Rules and features",
        order=24,
    ),
    Screen(
        name="feature",
        path="/features/{name}",
        title="Feature",
        template="feature.html",
        load=_feature,
        operation="features_top",
        in_navigation=False,
        within="features",
        parts={"top": Part("feature_top.html", _top), "spread": Part("feature_spread.html", _spread)},
    ),
    Screen(
        name="segments",
        path="/segments",
        title="Segments",
        template="segments.html",
        load=_segments,
        operation="segments_list",
        summary="Who belongs together, always up to date.",
        order=12,
        parts={"sizes": Part("segments_sizes.html", _sizes)},
    ),
    Screen(
        name="segment",
        path="/segments/{name}",
        title="Segment",
        template="segment.html",
        load=_segment,
        operation="segments_members",
        in_navigation=False,
        within="segments",
        parts={"leaving": Part("segment_leaving.html", _leaving), "size": Part("segment_size.html", _size)},
    ),
)
