"""People: who was active last, and those whom a text, a segment, a tag, a trait, a feature or the last visit leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.foundation.conditions.operators import OPERATORS as CONDITION_OPERATORS
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.profile.people.tags import LIST
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.names import TAG
from threadline.kernel.screen import Part, Screen
from threadline.kernel.time import DAY, format_time
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.formats import label, words

PAGE = 25
CSV_MAX = 5_000
"""People in a file; of more an export makes files in the background."""
OPERATORS = tuple(
    (name, CONDITION_OPERATORS[name].text)
    for name in ("greater_than_or_equal", "greater_than", "less_than", "less_than_or_equal", "equals", "not_equals")
)
SEEN = (
    ("1", "In the last 24 hours"),
    ("7", "In the last 7 days"),
    ("30", "In the last 30 days"),
    ("90", "In the last 90 days"),
    ("-30", "Not for 30 days"),
    ("-90", "Not for 90 days"),
    ("-365", "Not for a year"),
)
"""When people were last seen: days, with a minus of those who were not."""
SORTS = (
    ("last_seen", "Last seen, newest first"),
    ("-last_seen", "Last seen, oldest first"),
    ("name", "Name, A to Z"),
    ("-name", "Name, Z to A"),
    ("created", "Known since, newest first"),
    ("-created", "Known since, oldest first"),
)
COLUMNS = (
    ("email", "E-mail address"),
    ("phone", "Phone number"),
    ("user_id", "User ID"),
    ("last_seen", "Last seen"),
    ("created", "Known since"),
    ("events", "Events"),
    ("tags", "Tags"),
)
SHOWN = ("last_seen", "created", "events", "tags")
"""Columns where none are chosen."""
FIELDS_MAX = 8
"""Traits and features that may be columns."""
_NAMES_MAX = 40
"""Traits and features that the form offers as columns."""
_NEWEST = 25
"""Events of which the form has the names of traits."""


def _load(asking: Asking) -> Mapping[str, Any]:
    segments = [
        (segment["name"], words(segment["name"])) for segment in asking.ask_or({}, "segments_list").get("segments", [])
    ]
    features = [feature["name"] for feature in asking.ask_or({}, "features_list").get("features", [])]
    traits = sorted({name for event in _newest(asking) for name in event["properties"]} - {LIST})
    tags = asking.engine.catalogue.names.offered(TAG, asking.engine, asking.session.workspace)
    asking.calls.clear()  # they fill the form; what the page shows is the list
    return {
        "segments": segments,
        "features": [(name, label(name)) for name in features],
        "traits": traits,
        "tags": tags,
        "operators": OPERATORS,
        "seen": SEEN,
        "sorts": SORTS,
        "columns": COLUMNS,
        "further": _titled(
            [f"traits.{name}" for name in traits[:_NAMES_MAX]] + [f"features.{name}" for name in features[:_NAMES_MAX]]
        ),
        **_list(asking),
    }


def _newest(asking: Asking) -> list[Any]:
    """The newest events that say who somebody is, for the traits that they have; none where no index has events."""
    try:
        return [hit["event"] for hit in asking.ask("search_find", type=IDENTIFY, limit=_NEWEST)["hits"]]
    except ThreadlineError:
        return []


def _list(asking: Asking) -> Mapping[str, Any]:
    query = asking.query
    chosen = [name for name in asking.queries.get("column", ()) if name]
    shown = {
        "chosen": [name for name, _ in COLUMNS if name in chosen] if chosen else list(SHOWN),
        "fields": _titled(_fields(asking)),
        "titles": dict(COLUMNS),
        "is_filtered": any(
            query.get(name) for name in ("q", "segment", "tag", "group", "seen", "value", "trait_value")
        ),
        "csv_max": CSV_MAX,
        "asked": {**query, "column": chosen},
        "page": {"people": []},
    }
    try:
        page = asking.ask("people_find", **_asked(asking), cursor=query.get("cursor"), limit=PAGE)
    except ThreadlineError as error:
        return {**shown, "problem": str(error), "hint": error.hint}
    return {**shown, "page": page}


def _csv(asking: Asking) -> Mapping[str, Any]:
    """The people of the list as a file: a column for each kind of identifier, name, address and value."""
    return {"document": asking.table("people_find", CSV_MAX, without=("identifiers", "because"), **_asked(asking))}


def _asked(asking: Asking) -> dict[str, Any]:
    """What the form asks for, as parameters of the operation."""
    query = asking.query
    sort = query.get("sort", "")
    when = [*_trait(query), *_feature(query)]
    return {
        "text": query.get("q", "").strip(),
        **{name: query.get(name) for name in ("segment", "tag", "group")},
        **_seen(query.get("seen", ""), asking.now),
        "when": json.dumps({"all": when} if len(when) > 1 else when[0]) if when else "",
        "sort": sort.removeprefix("-") or None,
        "reverse": True if sort.startswith("-") else None,
        "fields": _fields(asking) or None,
    }


def _fields(asking: Asking) -> list[str]:
    names = [name for name in asking.queries.get("column", ()) if name.startswith(("traits.", "features."))]
    return list(dict.fromkeys(names))[:FIELDS_MAX]


def _titled(fields: Sequence[str]) -> dict[str, str]:
    """Fields with what their columns are called."""
    return {field: label(field.partition(".")[2]) for field in fields}


def _seen(days: str, now: int) -> dict[str, str]:
    if days not in dict(SEEN):
        return {}
    at = format_time(now - abs(int(days)) * DAY)
    return {"seen_before": at} if days.startswith("-") else {"seen_from": at}


def _trait(query: Mapping[str, str]) -> list[Any]:
    """That a trait has the value that the form asks for: a text equals the number that it says, and never a flag."""
    name, value = query.get("trait", "").strip(), query.get("trait_value", "").strip()
    if not name or not value:
        return []
    field = ["traits", *name.split(".")]
    test: dict[str, Any] = {"field": field, "equals": value}
    return [{"any": [test, {"field": field, "equals": value == "true"}]} if value in ("true", "false") else test]


def _feature(query: Mapping[str, str]) -> list[Any]:
    feature, value = query.get("feature"), query.get("value", "").strip()
    if not feature or not value:
        return []
    return [{"field": ["features", feature], query.get("is", OPERATORS[0][0]): _read(value)}]


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


SCREENS = (
    Screen(
        name="people",
        path="/people",
        title="People",
        template="people.html",
        load=_load,
        operation="people_find",
        order=10,
        summary="Find people by name, address, id or phone number, and filter them by what is known of them.",
        parts={"list": Part("people_list.html", _list), "csv": Part("", _csv, file="people.csv")},
    ),
)
