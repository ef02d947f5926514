"""People: who was active last, everybody, or those whom a text, a segment, a tag, a group or a feature leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from threadline.capabilities.foundation.conditions.operators import OPERATORS as CONDITION_OPERATORS
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking

PAGE = 25
OPERATORS = tuple(
    (name, CONDITION_OPERATORS[name].text)
    for name in ("greater_than_or_equal", "greater_than", "less_than", "less_than_or_equal", "equals", "not_equals")
)


def _load(asking: Asking) -> Mapping[str, Any]:
    segments = [segment["name"] for segment in asking.ask_or({}, "segments_list").get("segments", [])]
    features = [feature["name"] for feature in asking.ask_or({}, "features_list").get("features", [])]
    asking.calls.clear()  # they fill the form; what the page shows is the list
    return {"segments": segments, "features": features, "operators": OPERATORS, **_list(asking)}


def _list(asking: Asking) -> Mapping[str, Any]:
    query = asking.query
    asked = {name: query.get(name) for name in ("segment", "tag", "group")}
    text, when = query.get("q", "").strip(), _condition(query)
    is_filtered = bool(text or when or any(asked.values()))
    is_recent = not is_filtered and "all" not in query and "cursor" not in query
    shown = {"is_filtered": is_filtered, "is_recent": is_recent, "page": {"people": [], "people_read": 0}}
    cursor = query.get("cursor")
    try:
        if text or is_recent:
            conditions = _written([*_members(asked), *when])
            page = asking.ask("people_find", text=text, when=conditions, cursor=cursor, limit=PAGE)
        else:
            page = asking.ask("people_list", **asked, when=_written(when), cursor=cursor, limit=PAGE)
    except ThreadlineError as error:
        return {**shown, "problem": str(error), "hint": error.hint}
    return {**shown, "page": page}


def _members(asked: Mapping[str, str | None]) -> list[Any]:
    """What the list goes through an index for, as conditions on whom a text finds."""
    conditions: list[Any] = []
    if asked["segment"]:
        conditions.append({"field": ["segments", asked["segment"]], "exists": True})
    if asked["tag"]:
        conditions.append({"field": "tags", "contains": asked["tag"]})
    if asked["group"]:
        conditions.append({"field": ["groups", asked["group"]], "exists": True})
    return conditions


def _condition(query: Mapping[str, str]) -> list[Any]:
    """The conditions that the form asks for."""
    feature, value = query.get("feature"), query.get("value", "").strip()
    if not feature or not value:
        return []
    operator = query.get("is", OPERATORS[0][0])
    try:
        wanted = json.loads(value)
    except ValueError:
        wanted = value
    return [{"field": ["features", feature], operator: wanted}]


def _written(when: list[Any]) -> str:
    return json.dumps({"all": when} if len(when) > 1 else when[0]) if when else ""


SCREENS = (
    Screen(
        name="people",
        path="/people",
        title="People",
        template="people.html",
        load=_load,
        operation="people_list",
        order=10,
        summary="Find people by name, address or id, and filter them by segment, tag, group or feature.",
        parts={"list": Part("people_list.html", _list)},
    ),
)
