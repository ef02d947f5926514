"""Analytics: every analysis that is an operation, with a form made of its parameters, its picture and its SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from threadline.kernel.errors import InvalidValue, NotFound, ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.event_types import distinct, names_in, renamed, suggested, typed_members
from threadline.surfaces.console.fields import fields_of, given
from threadline.surfaces.console.formats import label
from threadline.surfaces.console.screens.journeys import step_labels

GROUP = "analytics_"
JOURNEY = "analytics_journey"
STEPS = frozenset({"step", "next"})
"""Members of the answer about a journey in which ids of its steps stand."""
FRAME = ("sql", "position", "bound", "notes")
"""Members that every answer has; the others are what it says."""
ROWS_MAX = 500
UNFOLDED = 3
"""Fields that are shown of a question that requires none; the others unfold."""
BEGIN = {
    "funnel": "How many of those who began completed every step, and how long it took them.",
    "retention": "Of those who came for the first time in a week, how many come back in the weeks after.",
    "cohorts": "What people have bought by now, by when they first came.",
    "trend": "How often something happens, day by day.",
    "sessions": "How long people stay, and how much they do in one visit.",
    "paths": "What people do next.",
    "attribution": "Which campaigns deserve the credit for what was bought.",
    "rfm": "Who buys recently, often and for much.",
    "distribution": "How a feature is spread over people, and whether it has drifted.",
    "experiment": "Which variant is better, and whether that is certain yet.",
    "journey": "Who goes along which way of a journey, and where people leave it.",
    "lifetime": "What each customer will buy, and whether they still are one.",
}
"""What an analysis answers, for whoever does not know its name."""


def _load(asking: Asking) -> Mapping[str, Any]:
    names = [name.removeprefix(GROUP) for name in asking.operations if name.startswith(GROUP)]
    order = list(BEGIN)
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    return {
        "analyses": [
            {
                "name": name,
                "title": _title(name),
                "question": BEGIN.get(name, ""),
                "summary": asking.operations[GROUP + name].summary,
            }
            for name in names
        ]
    }


def _title(name: str) -> str:
    return name.upper() if name == "rfm" else label(name.replace("-", "_"))


def _operation(asking: Asking) -> str:
    name = GROUP + asking.path["name"].replace("-", "_")
    if name not in asking.operations:
        raise NotFound(f"there is no analysis {asking.path['name']!r}", hint="/analytics lists them")
    return name


def _one(asking: Asking) -> Mapping[str, Any]:
    operation = asking.operations[_operation(asking)]
    fields = fields_of(operation.params)
    values = given(operation, asking.query, asking.queries)
    asked = [field for field in fields if field.is_required] or list(fields[:UNFOLDED])
    return {
        "fields": [field.shown(asking.engine, asking.session.workspace) for field in asked],
        "more": [field.shown(asking.engine, asking.session.workspace) for field in fields if field not in asked],
        "is_open": any(field.name in values for field in fields if field not in asked),
        "values": values,
        "name": asking.path["name"],
        "title": _title(asking.path["name"]),
        "summary": operation.summary,
        "question": BEGIN.get(asking.path["name"], ""),
        "is_asked": all(field.name in values for field in fields if field.is_required),
        "query_text": {**values, "part": "answer"},
        "types": _types(asking) if any(field.is_event_type for field in fields) else (),
    }


def _types(asking: Asking) -> list[dict[str, str]]:
    calls = len(asking.calls)
    types = asking.ask_or({"event_types": []}, "catalogue")["event_types"]
    del asking.calls[calls:]  # they fill the form; what the page shows is the answer
    return suggested(types)


def _answer(asking: Asking) -> Mapping[str, Any]:
    name = _operation(asking)
    values = given(asking.operations[name], asking.query, asking.queries)
    try:
        answer, chart = asking.picture(name, **values)
    except InvalidValue as error:
        # Nobody has asked yet: what is missing is a request of the page, no mistake of the reader.
        return {"needed": str(error)} if not values else {"problem": str(error), "hint": error.hint}
    except ThreadlineError as error:
        return {"problem": str(error), "hint": error.hint}
    details = {member: value for member, value in answer.items() if member not in FRAME}
    result, by = asking.operations[name].result, values.get("by", "")
    called, members = names_in(result, details, by), typed_members(result, by)
    if name == JOURNEY:
        called, members = step_labels(asking, answer["journey"]), STEPS
    tables = [
        {"name": member, "rows": value, "columns": _columns(value, members)}
        for member, value in details.items()
        if isinstance(value, list) and value
    ]
    facts = {member: value for member, value in details.items() if not isinstance(value, list)}
    return {
        "answer": answer,
        "chart": None if chart is None else renamed(chart, distinct(called)),
        "tables": tables,
        "facts": facts,
        "rows_max": ROWS_MAX,
        "event_names": called,
        "typed": dict.fromkeys(members, True),
    }


def _columns(rows: list[Any], named: Collection[str]) -> list[dict[str, Any]]:
    """The members that any row says something in, whether that is a number, and whether it is one of those that have
    another name; none for rows of plain values."""
    names = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
    values = {name: [row[name] for row in rows if row.get(name) not in ("", None)] for name in names}
    return [
        {"name": name, "is_number": all(type(cell) in (int, float) for cell in cells), "is_named": name in named}
        for name, cells in values.items()
        if cells
    ]


SCREENS = (
    Screen(
        name="analytics",
        path="/analytics",
        title="Analytics",
        template="analytics.html",
        load=_load,
        operation="analytics_trend",
        summary="Questions about everybody at once, each with its picture and its SQL.",
        order=16,
    ),
    Screen(
        name="analysis",
        path="/analytics/{name}",
        title="Analytics",
        template="analysis.html",
        load=_one,
        operation="analytics_trend",
        in_navigation=False,
        within="analytics",
        parts={"answer": Part("analysis_answer.html", _answer)},
    ),
)
