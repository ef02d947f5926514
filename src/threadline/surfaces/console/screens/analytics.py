"""Analytics: every analysis that is an operation, with a form made of its parameters, its picture and its SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from threadline.kernel.errors import InvalidValue, NotFound, ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.event_types import distinct, names_in, renamed, suggested, typed_members
from threadline.surfaces.console.fields import Field, fields_of, given
from threadline.surfaces.console.formats import digits_of, label, measured, spoken
from threadline.surfaces.console.screens.journeys import step_labels
from threadline.surfaces.row_formats import rows_of

GROUP = "analytics_"
JOURNEY = "analytics_journey"
EXPERIMENT = "analytics_experiment"
VARIANTS = frozenset({"arm", "control"})
"""Members of the answer about an experiment in which names of variants stand."""
STEPS = frozenset({"step", "next"})
"""Members of the answer about a journey in which ids of its steps stand."""
FRAME = ("sql", "position", "bound", "notes", "timezone", "week_starts_on")
"""Members that say of an answer what it is made of; the others are what it says."""
ROWS_MAX = 100
"""Rows of a table on the page, the newest of one that runs by time; the file has all of them."""
TIME = "period"
"""The column by which a table runs by time, where it holds days and comes first."""
TIMES = frozenset({"start", "stop"})
"""Usual times fill these in: nobody has to see them for that."""
UNFOLDED = 3
"""Fields that are shown of a question that requires none; the others unfold."""
BEGIN = {
    "funnel": "How many of those who began completed every step, and how long it took them.",
    "retention": "Of those who came for the first time in a week, how many come back in the weeks after.",
    "cohorts": "What people have bought by now, by when they first came.",
    "trend": "How often something happens, day by day.",
    "sessions": "How long people stay, and how much they do in one visit.",
    "paths": "What people do next, session by session.",
    "attribution": "Which campaigns deserve the credit for what was bought.",
    "rfm": "Who buys recently, often and for much.",
    "distribution": "How a feature is spread over people, and whether it has drifted.",
    "experiment": "Which variant is better, and whether that is certain yet.",
    "journey": "Who takes which path of a journey, and where people leave it.",
    "lifetime": "What each customer will buy, and whether they still are one.",
}
"""What an analysis answers, for whoever does not know its name."""
FIELD_LABELS = {"most": "Limit"}
"""What the form calls parameters that have another name for programs."""
LABELS = {
    "undecided": "Still open",
    "ways": "Paths",
    "arm": "Variant",
    "control": "Compared with",
    "least": "Minimum",
    "most": "Maximum",
    "low": "From",
    "high": "To",
    "seconds_p50": "Median time",
    "seconds_p95": "Time of 95%",
    "under_way": "In it now",
    "left": "Left early",
    "bounced": "Of one event",
}
"""What the page calls members of answers that have another name for programs."""
LABELS_OF = {"lifetime": {"recency": "Weeks to the last", "age": "Weeks known", "repeats": "Repeat purchases"}}
"""Analysis -> labels of its own."""


def _load(asking: Asking) -> Mapping[str, Any]:
    return {"analyses": analyses_of(asking)}


def analyses_of(asking: Asking) -> list[dict[str, str]]:
    """Every analysis that is in force: its name, its title, the question that it answers, and what it does."""
    names = [name.removeprefix(GROUP) for name in asking.operations if name.startswith(GROUP)]
    order = list(BEGIN)
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    return [
        {
            "name": name,
            "title": _title(name),
            "question": BEGIN.get(name, ""),
            "summary": asking.operations[GROUP + name].summary,
        }
        for name in names
    ]


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
        "fields": [_shown(asking, field) for field in asked],
        "more": [_shown(asking, field) for field in fields if field not in asked],
        "is_open": any(field.name in values for field in fields if field not in asked and field.name not in TIMES),
        "values": values,
        "name": asking.path["name"],
        "title": _title(asking.path["name"]),
        "summary": operation.summary,
        "question": BEGIN.get(asking.path["name"], ""),
        "is_asked": all(field.name in values for field in fields if field.is_required)
        and all(values.keys() & {*choice.names} for choice in operation.choices if choice.required),
        "query_text": {**values, "part": "answer"},
        "has_times": {field.name for field in fields} >= TIMES,
        "types": _types(asking) if any(field.is_event_type for field in fields) else (),
    }


def _shown(asking: Asking, field: Field) -> dict[str, Any]:
    shown = field.shown(asking.engine, asking.session.workspace)
    return {**shown, "title": FIELD_LABELS.get(field.name, field.title)}


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
    if name == EXPERIMENT:
        called, members = {**called, "holdout": spoken("holdout")}, members | VARIANTS
    if name == JOURNEY:
        called, members = step_labels(asking, answer["journey"]), STEPS
    tables = [
        {"name": member, "rows": _newest_first(value), "columns": _columns(value, members)}
        for member, value in details.items()
        if isinstance(value, list) and value
    ]
    facts = {
        member: _named(value)
        for member, value in details.items()
        if not isinstance(value, list) and value not in ("", {})
    }
    return {
        "answer": answer,
        "chart": None if chart is None else renamed(chart, distinct(called)),
        "days": _days(answer),
        "tables": tables,
        "facts": facts,
        "rows_max": ROWS_MAX,
        "file": {**values, "part": "csv"} if rows_of(result) is not None else None,
        "analysis": asking.path["name"],
        "event_names": called,
        "labels": {**LABELS, **LABELS_OF.get(asking.path["name"], {})},
        "typed": dict.fromkeys(members, True),
    }


def _days(answer: Mapping[str, Any]) -> str:
    """Which days, and weeks, an answer counts by."""
    if "timezone" not in answer:
        return ""
    weeks = f", weeks from {answer['week_starts_on'].capitalize()}" if "week_starts_on" in answer else ""
    return f"Days of {answer['timezone']}{weeks}."


def _named(value: Any) -> Any:
    """A value with its members as the columns of tables are called and filled in."""
    if not isinstance(value, dict):
        return value
    return {
        LABELS.get(name, name): measured(inner, name) if isinstance(inner, int) and name in LABELS else _named(inner)
        for name, inner in value.items()
    }


def _csv(asking: Asking) -> Mapping[str, Any]:
    """The rows of an answer as a file."""
    name = _operation(asking)
    if rows_of(asking.operations[name].result) is None:
        raise NotFound("this answer is several tables, and no file of one")
    return {"document": asking.table(name, 0, **given(asking.operations[name], asking.query, asking.queries))}


def _newest_first(rows: list[Any]) -> list[Any]:
    """Rows with the newest on top, if they run by day."""
    is_by_time = isinstance(rows[0], dict) and isinstance(rows[0].get(TIME), str)
    return rows[::-1] if is_by_time else rows


def _columns(rows: list[Any], named: Collection[str]) -> list[dict[str, Any]]:
    """The members that any row says something in, the time first: whether that is a number, with how many digits
    behind the point, and whether it is one of those that have another name; none for rows of plain values."""
    names = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
    values = {name: [row[name] for row in rows if row.get(name) not in ("", None)] for name in names}
    return [
        {
            "name": name,
            "is_number": all(type(cell) in (int, float) for cell in cells),
            "digits": digits_of(cells),
            "is_named": name in named,
        }
        for name, cells in sorted(values.items(), key=lambda column: not _is_time(*column))
        if cells
    ]


def _is_time(name: str, cells: list[Any]) -> bool:
    return name == TIME and all(isinstance(cell, str) for cell in cells)


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
        parts={"answer": Part("analysis_answer.html", _answer), "csv": Part("", _csv, file="answer.csv")},
    ),
)
