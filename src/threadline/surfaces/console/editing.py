"""What an editor was sent: the text of a definition, for parts of which a form may have been filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions.fields import RELATIVE
from threadline.capabilities.foundation.conditions.wording import field_text
from threadline.kernel.errors import InvalidValue
from threadline.surfaces.console import action_form
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
from threadline.surfaces.console.conditions_yaml import text_in, tree_in, value_in, with_text, with_tree, with_value
from threadline.surfaces.console.event_types import suggested

BY, TO, DO, KEY, TEXT, ABOUT, ACTS = "_by", "_to", "_do", "_key", "_text", "_description", "_acts"
"""Fields: how the definition is being written, how it is to be shown, the button that was pressed, the key of the
conditions, the field of the text, the description, and whether the actions were filled in as well."""
DESCRIPTION = "description"
FORM, YAML = "form", "yaml"
EVENTS_KEY = "conditions"
"""The key of conditions that look at an event as well, of rules."""
ACTIONS = "actions"
"""The key of what a rule does."""
MODEL = "model"
"""The key of what a rule has instead of conditions."""
PEOPLE = 12
"""Whose fields are on offer: each takes a millisecond or two, and the page waits for them."""
OFFERED = {
    "event type": ("catalogue", "event_types", ""),
    "journey": ("journeys_list", "journeys", "name"),
    "template": ("mail_templates", "templates", "name"),
    "destination": ("webhooks_destinations", "destinations", "name"),
}
"""What parameters of actions are the names of -> the operation that lists these, the member, and the name of each."""
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
    acts: action_form.Form | None
    """What a rule does. None: the form cannot say it, or it is no rule."""

    def beside_the_form(self) -> dict[str, Any]:
        """What is shown of it beside the form: whether something is missing, and where."""
        return {
            "text": self.text,
            "view": self.view,
            "unfinished": str(self.unfinished or ""),
            "unfinished_part": unfinished_part(self.unfinished) if self.unfinished else "",
        }

    def shown(self, asking: Asking, key: str) -> dict[str, Any]:
        """What the template shows of all of it. The fields on offer are looked up, which takes longer than the rest."""
        content: dict[str, Any] = {
            **self.beside_the_form(),
            "focus": self.focus,
            "decides_by_model": key == EVENTS_KEY and value_in(self.text, MODEL) is not None,
        }
        if key and self.view == FORM and self.form is not None:
            known = fields_of(asking, key)
            form = fitted(self.form, known)
            content |= {
                "form": shown(form, {**dict(_unseen(form)), **known}, self.unfinished),
                "description": self.description,
                "fields": [field._asdict() for field in known.values()],
                "has_actions": key == EVENTS_KEY,
            }
            if self.acts is not None:
                content["acts"] = action_form.shown(action_form.fitted(self.acts), self.unfinished)
                content["offered"] = dict(_offered(asking, action_form.named_in(self.acts)))
        return content


def edited(asking: Asking, key: str, text: str) -> Edited:
    """The definition as it stands after what was sent; ``key`` is that of its conditions, empty for one without."""
    query = asking.query
    form: Group | None = None
    acts: action_form.Form | None = None
    unfinished: Unfinished | None = None
    focus = ""
    view = query.get(TO) or query.get(BY) or FORM
    if not key:
        return Edited(text, YAML, None, None, None, "", None)
    if query.get(BY) == FORM:
        text = _described(text, query)
        filled, focus = changed(_filled(asking, query, key), query.get(DO, ""))
        acts, at = _acts_filled(query)
        form, focus = filled, focus or at
        try:
            text = with_tree(text, key, tree_of(filled))
        except Unfinished as problem:
            unfinished = problem
        try:
            text = _with_actions(text, acts)
        except Unfinished as problem:
            unfinished = unfinished or problem
        view = FORM if unfinished else view
    else:
        tree = tree_in(text, key)
        is_begun = tree == "absent" and (key != EVENTS_KEY or value_in(text, MODEL) is None)
        form = Group("all", (Row(),), is_single=True) if is_begun else None
        if not isinstance(tree, str):
            form = form_of(tree)
    if acts is None and key == EVENTS_KEY:
        acts = action_form.form_of(value_in(text, ACTIONS))
    shown_as = YAML if form is None else view
    return Edited(text, shown_as, form, unfinished, text_in(text, DESCRIPTION), focus, acts)


def _acts_filled(fields: Mapping[str, str]) -> tuple[action_form.Form | None, str]:
    """The actions that were filled in, after the button that was pressed, and what is to be filled in next; None where
    their form was not shown."""
    if not fields.get(ACTS):
        return None, ""
    return action_form.changed(action_form.fitted(action_form.read_fields(fields)), fields.get(DO, ""))


def _with_actions(text: str, acts: action_form.Form | None) -> str:
    """The text with these actions, as it is where it says them. Raises `Unfinished`."""
    actions = [] if acts is None else action_form.list_of(acts)
    if acts is None or action_form.is_written(value_in(text, ACTIONS), actions):
        return text
    return with_value(text, ACTIONS, actions)


def _offered(asking: Asking, wanted: set[str]) -> Iterator[tuple[str, list[Any]]]:
    """What there is of what parameters name, asked for only where an action needs it."""
    before = [*asking.calls]
    for what, (operation, member, name) in OFFERED.items():
        if what in wanted:
            entries = asking.ask_or({}, operation).get(member, [])
            names = [{"value": entry[name], "text": ""} for entry in entries] if name else suggested(entries)
            yield what.replace(" ", "-"), names
    asking.calls[:] = before  # they fill the form; what the page shows is what is written


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
        text = _with_actions(text, _acts_filled({**fields, DO: ""})[0])
    except Unfinished as problem:
        raise InvalidValue(f"{unfinished_part(problem)} is not finished: {problem}", param=problem.name) from None
    return [(field, text if field == name else value) for field, value in pairs]


def unfinished_part(problem: Unfinished) -> str:
    """What it is in which something is missing."""
    return "an action" if problem.name.startswith(f"{action_form.PREFIX}.") else "a condition"


def _filled(asking: Asking, fields: Mapping[str, str], key: str) -> Group:
    """The form that was filled in. Only a field that was chosen just now asks for those there are."""
    names = [name.removesuffix(".is") for name in fields if name.startswith(f"{PREFIX}.") and name.endswith(".is")]
    is_settled = all(fields.get(f"{name}.field", "") == fields.get(f"{name}.shown", "") for name in names)
    known = {} if is_settled else fields_of(asking, key)
    return fitted(read_fields(fields, {field.label: path for path, field in known.items()}), known)


def _unseen(form: Group) -> Iterator[tuple[str, Known]]:
    """The fields of a form, each with a name in words, for those that nobody has of whom fields are on offer."""
    for part in form.parts:
        if isinstance(part, Group):
            yield from _unseen(part)
        elif (path := part.field) and all(steps := path_of(path)):
            within = next((step for step in steps if step not in RELATIVE), "")
            label = _label(field_text(steps), within)
            yield path, Known(path, label if label.isprintable() else path, "", ())


def _label(text: str, within: str) -> str:
    """What a field is called: its name, and what it is a part of where the name does not say it."""
    called = _CALLED.get(within, within)
    return text if called == "event" or text.startswith(called) else f"{text} ({called})"


def fields_of(asking: Asking, key: str) -> dict[str, Known]:
    """The fields on offer, by path, each with a name in words that no other has."""
    before = [*asking.calls]
    answer = asking.ask_or({"fields": []}, "definitions_fields", people=PEOPLE, events=key == EVENTS_KEY or None)
    asking.calls[:] = before  # they fill the form; what the page shows is what is written
    known: dict[str, Known] = {}
    labels = set[str]()
    for entry in answer["fields"]:
        steps = entry["field"] if isinstance(entry["field"], list) else entry["field"].split(".")
        path = field_of(tuple(steps))
        label = _label(entry["text"], entry["within"])
        if label in labels or path_of(label) == tuple(steps):
            label = path
        labels.add(label)
        known[path] = Known(path, label, entry["type"], entry["samples"])
    return known
