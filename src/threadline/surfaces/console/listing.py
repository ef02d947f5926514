"""A list with what can be done about each of its entries: the shape of most screens of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.fields import fields_of

Kind = Literal[
    "text",
    "words",
    "mono",
    "number",
    "when",
    "status",
    "person",
    "event",
    "value",
    "chips",
    "link",
    "detail",
    "spoken",
]


def column(member: str, title: str, kind: Kind = "text", *, path: str = "") -> dict[str, Any]:
    """One column: a member of the entries, and how it is shown; a ``link`` leads to ``path`` and the member, a
    ``detail`` is opened."""
    return {"member": member, "title": title, "kind": kind, "path": path}


def action(
    operation: str,
    label: str,
    params: Mapping[str, str],
    *,
    fixed: Mapping[str, str] | None = None,
    confirm: str = "",
    ask: Sequence[str] = (),
    when: tuple[str, Sequence[Any]] | None = None,
    is_dangerous: bool = False,
) -> dict[str, Any]:
    """A button in each row: parameter -> member of the entry, fixed parameters, and those that are asked for.

    ``when`` names a member and the values with which the button is there.
    """
    return {
        "operation": operation,
        "label": label,
        "params": dict(params),
        "fixed": dict(fixed or {}),
        "confirm": confirm,
        "ask": list(ask),
        "when": when,
        "danger": is_dangerous,
    }


def listed(
    title: str,
    entries: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
    *,
    next_: str = "",
    actions: Sequence[Mapping[str, Any]] = (),
    empty: str = "",
    note: str = "",
) -> dict[str, Any]:
    """A list of entries for `listing.html`."""
    rows: list[dict[str, Any]] = [
        {
            "entry": entry,
            "actions": [
                button
                for button in actions
                if button["when"] is None or entry.get(button["when"][0]) in button["when"][1]
            ],
        }
        for entry in entries
    ]
    return {
        "title": title,
        "rows": rows,
        "columns": list(columns),
        "next": next_,
        "empty": empty,
        "note": note,
        "operations": sorted({button["operation"] for row in rows for button in row["actions"]}),
    }


def form(
    asking: Asking,
    operation: str,
    title: str,
    button: str,
    *,
    done: str = "",
    then: str = "",
    show: str = "",
    leave_out: Sequence[str] = (),
) -> dict[str, Any] | None:
    """A form of all parameters of an operation, for whoever may call it. ``show``: where the answer is shown."""
    if not asking.may(operation):
        return None
    params = asking.operations[operation].params
    fields = [
        field.shown(asking.engine, asking.session.workspace)
        for field in fields_of(params)
        if field.name not in leave_out
    ]
    return {
        "operation": operation,
        "title": title,
        "button": button,
        "fields": fields,
        "done": done,
        "then": then,
        "show": show,
    }
