"""What an editor was sent: the text of a definition, whose conditions a form may have been filled in for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from threadline.kernel.errors import InvalidValue
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.condition_form import (
    PREFIX,
    Group,
    Known,
    Row,
    Unfinished,
    changed,
    field_of,
    fitted,
    form_of,
    path_of,
    read_fields,
    shown,
    tree_of,
)
from threadline.surfaces.console.conditions_yaml import text_in, tree_in, with_text, with_tree

BY, TO, DO, KEY, TEXT, ABOUT = "_by", "_to", "_do", "_key", "_text", "_description"
"""Fields: how the definition is being written, how it is to be shown, the button that was pressed, the key of the
conditions, the field of the text, and the description."""
DESCRIPTION = "description"
FORM, YAML = "form", "yaml"
EVENTS_KEY = "conditions"
"""The key of conditions that look at an event as well."""
PEOPLE = 15
"""Whose fields are on offer: each takes a millisecond or two, and the page waits for them."""
_CALLED = {"traits": "trait", "features": "feature", "segments": "segment"}


class Edited(NamedTuple):
    """A definition that is being written."""

    text: str
    view: str
    form: Group | None
    """None: the form cannot say it."""
    unfinished: Unfinished | None
    description: str | None
    """None: it has several lines, and stays in the YAML."""
    focus: str
    """The field that is to be filled in next."""

    def shown(self, asking: Asking, key: str) -> dict[str, Any]:
        """What the template shows."""
        found: dict[str, Any] = {
            "text": self.text,
            "view": self.view,
            "unfinished": str(self.unfinished or ""),
            "focus": self.focus,
        }
        if key and self.view == FORM and self.form is not None:
            known = fields_of(asking, key)
            found |= {
                "form": shown(fitted(self.form, known), known, self.unfinished),
                "description": self.description,
                "fields": [each._asdict() for each in known.values()],
            }
        return found


def edited(asking: Asking, key: str, text: str) -> Edited:
    """The definition as it stands after what was sent; ``key`` is that of its conditions, empty for one without."""
    query, form, unfinished, focus = asking.query, None, None, ""
    view = query.get(TO) or query.get(BY) or FORM
    if not key:
        return Edited(text, YAML, None, None, None, "")
    if query.get(BY) == FORM:
        text = _described(text, query)
        form, focus = changed(_filled(asking, query, key), query.get(DO, ""))
        try:
            text = with_tree(text, key, tree_of(form))
        except Unfinished as problem:
            unfinished, view = problem, FORM
    else:
        tree = tree_in(text, key)
        form = Group("all", (Row(),), is_single=True) if tree == "absent" else None
        if not isinstance(tree, str):
            form = form_of(tree)
    return Edited(text, YAML if form is None else view, form, unfinished, text_in(text, DESCRIPTION), focus)


def _described(text: str, fields: Mapping[str, str]) -> str:
    """The text with the description that was filled in, which may be missing where it was left empty."""
    return with_text(text, DESCRIPTION, fields.get(ABOUT, ""))


def completed(asking: Asking, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The fields of a form that is sent to an operation, with the conditions that were filled in put into the text."""
    fields = dict(pairs)
    if fields.get(BY) != FORM:
        return pairs
    key, name = fields.get(KEY, ""), fields.get(TEXT, "")
    try:
        text = with_tree(_described(fields.get(name, ""), fields), key, tree_of(_filled(asking, fields, key)))
    except Unfinished as problem:
        raise InvalidValue(f"a condition is not finished: {problem}", param=problem.name) from None
    return [(each, text if each == name else value) for each, value in pairs]


def _filled(asking: Asking, fields: Mapping[str, str], key: str) -> Group:
    """The form that was filled in. Only a field that was chosen just now asks for those there are."""
    names = [name.removesuffix(".is") for name in fields if name.startswith(f"{PREFIX}.") and name.endswith(".is")]
    is_settled = all(fields.get(f"{name}.field", "") == fields.get(f"{name}.shown", "") for name in names)
    known = {} if is_settled else fields_of(asking, key)
    return fitted(read_fields(fields, {each.label: path for path, each in known.items()}), known)


def fields_of(asking: Asking, key: str) -> dict[str, Known]:
    """The fields on offer, by path, each with a name in words that no other has."""
    before = [*asking.calls]
    answer = asking.ask_or({"fields": []}, "definitions_fields", people=PEOPLE, events=key == EVENTS_KEY or None)
    asking.calls[:] = before  # they fill the form; what the page shows is what is written
    found: dict[str, Known] = {}
    labels = set[str]()
    for each in answer["fields"]:
        steps = each["field"] if isinstance(each["field"], list) else each["field"].split(".")
        path = field_of(tuple(steps))
        within = _CALLED.get(each["within"], each["within"])
        says_so = within == "event" or each["text"].startswith(within)
        label = each["text"] if says_so else f"{each['text']} ({within})"
        if label in labels or path_of(label) == tuple(steps):
            label = path
        labels.add(label)
        found[path] = Known(path, label, each["type"], each["samples"])
    return found
