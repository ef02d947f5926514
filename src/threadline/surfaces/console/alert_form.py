"""An alert as a form: what was filled in or is stored, and the parameters that it says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions import plain, read_json
from threadline.surfaces.console import condition_form
from threadline.surfaces.console.actions import JSON, Pairs
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.condition_form import BLANK, PREFIX, Group, beyond_of, changed, form_of, is_blank
from threadline.surfaces.console.editing import DO, conditions_of

KIND = "_alert"
"""The field that says that a form is one of an alert."""
WHEN = "when"
"""The parameter of the conditions, and the key of those of a segment, which they are like."""
LISTS = ("segments", "tags")
"""Parameters that are filled in a name a row: ``tags.0`` is the first."""
MORE = "more:"
"""Of the button that adds a row to one of these, before its name."""
SWITCHES = ("dismissable",)
PLAIN = ("id", "title", "body", "link", "severity", "start", "stop")


class AlertForm(NamedTuple):
    """An alert that is being written."""

    values: Mapping[str, str]
    """Texts by the names of parameters, as fields have them."""
    conditions: Group
    beyond: Mapping[str, Any] = {}
    """Conditions that are nested more deeply than the form, by the name of the parameter; they stay as they are."""
    focus: str = ""
    """The field that is to be filled in next."""
    names: Mapping[str, list[str]] = {}
    """The rows of each of `LISTS`; one that is empty stands for a name to come."""

    def named(self, name: str) -> list[str]:
        """The names in the rows of a list."""
        return [text.strip() for text in self.names.get(name, ()) if text.strip()]


def posted(asking: Asking) -> AlertForm:
    """The form that was sent, after the button that was pressed."""
    query = asking.query
    conditions, focus = changed(conditions_of(asking, query, WHEN), query.get(DO, ""))
    values = {name: value.replace("\r\n", "\n") for name, value in query.items()}
    names = {name: _rows(query, name) for name in LISTS}
    more = query.get(DO, "").removeprefix(MORE) if query.get(DO, "").startswith(MORE) else ""
    if more in names:
        names[more] = [*names[more], ""]
        focus = f"{more}.{len(names[more]) - 1}"
    return AlertForm(values, conditions, beyond_of(query), focus, names)


def _rows(fields: Mapping[str, str], name: str) -> list[str]:
    """The rows of a list as they were sent, and an empty one where there is none."""
    rows: list[str] = []
    while (text := fields.get(f"{name}.{len(rows)}")) is not None:
        rows.append(text)
    return rows or [""]


def begun(shown: Mapping[str, Any] | None) -> AlertForm:
    """The form of an alert that there is, in its newest version, or of a new one."""
    if shown is None:
        return AlertForm({"expected": "0"}, BLANK, names={name: [""] for name in LISTS})
    alert = {**shown["alert"], "id": shown["id"]}
    values = {name: str(alert[name]) for name in PLAIN if alert[name]}
    values |= {name: json.dumps(alert[name]) for name in SWITCHES}
    names = {name: [*alert[name], ""] for name in LISTS}
    values["expected"] = str(shown["version"])
    if alert[WHEN] is None:
        return AlertForm(values, BLANK, names=names)
    form = form_of(read_json(alert[WHEN], WHEN))
    return AlertForm(values, form or BLANK, {} if form else {WHEN: alert[WHEN]}, names=names)


def completed(asking: Asking, pairs: Pairs) -> Pairs:
    """The fields of a form that is sent to an operation; that of an alert with what its conditions say."""
    fields = dict(pairs)
    return [*pairs, *_conditions(asking, fields)] if KIND in fields else pairs


def _conditions(asking: Asking, fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    conditions = conditions_of(asking, fields, WHEN) if f"{PREFIX}.how" in fields else BLANK
    when = beyond_of(fields).get(WHEN) or _tree_value(conditions)
    if when is not None:
        yield f"{WHEN}{JSON}", json.dumps(when)


def _tree_value(conditions: Group) -> Any:
    return None if is_blank(conditions) else plain(condition_form.sent_tree(conditions))


def audience(form: AlertForm) -> dict[str, Any] | None:
    """Who sees an alert, as the conditions of a segment; None: everybody."""
    tags = [{"field": "tags", "contains": tag} for tag in form.named("tags")]
    segments = [{"field": ["segments", name, "since"], "exists": True} for name in form.named("segments")]
    parts: list[Any] = [{"any": several} for several in (tags, segments) if several]
    when = form.beyond.get(WHEN) or _tree_value(form.conditions)
    parts += [] if when is None else [when]
    return {"all": parts} if parts else None
