"""People: everybody, or those whom a search, a segment, a tag, a group or a condition on a feature leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from threadline.capabilities.conditions.operators import OPERATORS as CONDITION_OPERATORS
from threadline.kernel.errors import ThreadlineError
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.screen import Part, Screen

PAGE = 25
OPERATORS = tuple(
    (name, CONDITION_OPERATORS[name].text)
    for name in (
        "greater_than_or_equal", "greater_than", "less_than", "less_than_or_equal", "equals", "not_equals",
    )
)  # fmt: skip
NAMES = ("name", "first_name", "last_name", "firstName", "lastName")


def _load(asking: Asking) -> Mapping[str, Any]:
    segments = [segment["name"] for segment in asking.ask_or({}, "segments_list").get("segments", [])]
    features = [feature["name"] for feature in asking.ask_or({}, "features_list").get("features", [])]
    asking.calls.clear()  # they fill the form; what the page shows is the list
    return {"segments": segments, "features": features, "operators": OPERATORS, **_list(asking)}


def _list(asking: Asking) -> Mapping[str, Any]:
    query = asking.query
    asked = {name: query.get(name) for name in ("segment", "tag", "group", "cursor")}
    text, when = query.get("q", "").strip(), _condition(query)
    shown = {"is_filtered": bool(text or when or any(asked.values())), "page": {"people": [], "people_read": 0}}
    try:
        page = _search(asking, text, asked, when) if text else _page(asking, asked, when)
    except ThreadlineError as error:
        return {**shown, "problem": str(error), "hint": error.hint}
    return {**shown, "page": page}


def _search(asking: Asking, text: str, asked: Mapping[str, Any], when: list[Any]) -> Any:
    """Those of this identifier; where there is none, those who are called so."""
    for ref in (text,) if ":" in text else (text, f"email:{text}"):
        page = {} if any(asked.values()) else asking.ask("people_list", identifier=ref, when=_written(when))
        if page.get("people"):
            return page
    called = [{"field": ["traits", name], "contains": text} for name in NAMES]
    return _page(asking, asked, [*when, {"any": called}])


def _page(asking: Asking, asked: Mapping[str, Any], when: list[Any]) -> Any:
    return asking.ask("people_list", **asked, when=_written(when), limit=PAGE)


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
        name="people", path="/people", title="People", template="people.html", load=_load, operation="people_list",
        order=10, summary="Everybody you know, and whoever a search, a segment or a condition leaves.",
        parts={"list": Part("people_list.html", _list)},
    ),
)  # fmt: skip
