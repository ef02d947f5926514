"""What an editor was sent: the text of a definition, for parts of which a form may have been filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from threadline.capabilities.decide.drafts.sections import BY_MEMBER, once_of
from threadline.capabilities.foundation.conditions.fields import EVENT
from threadline.capabilities.foundation.definitions import Document
from threadline.capabilities.foundation.definitions.declaring import NUMBER_FIELD
from threadline.capabilities.foundation.definitions.splicing import body_of, saying, value_of
from threadline.kernel.errors import InvalidValue
from threadline.kernel.names import named_as
from threadline.kernel.ports import Catalogue
from threadline.surfaces.console import action_form
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.condition_form import (
    PREFIX,
    Group,
    Known,
    Unfinished,
    field_of,
    fitted,
    label_of,
    path_of,
    read_fields,
    shown_with,
)
from threadline.surfaces.console.conditions_yaml import value_in, with_value
from threadline.surfaces.console.definition_form import (
    Page,
    Sent,
    filled_in,
    read_sent,
    shown_fields,
    with_inner,
    written,
)
from threadline.surfaces.console.event_types import suggested
from threadline.surfaces.console.shapes import VALUE, Shape, entry_shape

BY, TO, DO, KEY, TEXT, ABOUT, ACTS = "_by", "_to", "_do", "_key", "_text", "_description", "_acts"
"""Fields: how the definition is being written, how it is to be shown, the button that was pressed, the key of the
conditions, the field of the text, the description, and whether the actions were filled in as well."""
SECTION = "_section"
"""Field: the section of the definition."""
DESCRIPTION = "description"
FORM, YAML = "form", "yaml"
EVENTS_KEY = "conditions"
"""The key of conditions that look at an event as well, of rules."""
ACTIONS = "actions"
"""The key of what a rule does."""
APART = {"rules": (ACTIONS, "version"), "rule_sets": ("historical",)}
"""Section -> keys that no field stands for: actions have a form of their own, a draft is given its version, and what
was renamed is written under its new name."""
_APART = frozenset(key for keys in APART.values() for key in keys)
MODEL = "model"
"""The key of what a rule has instead of conditions."""
AS_YAML = {"journeys": ("steps", "events"), "rules": (MODEL,)}
"""Section -> keys that are filled in as YAML: steps of a journey lead to others, and so do those of a model."""
PEOPLE = 12
"""Whose fields are on offer: each takes a millisecond or two, and the page waits for them."""
OFFERED = {
    "event type": ("catalogue", "event_types", ""),
    "journey": ("journeys_list", "journeys", "name"),
    "template": ("mail_templates", "templates", "name"),
    "destination": ("webhooks_destinations", "destinations", "name"),
}
"""What parameters of actions are the names of -> the operation that lists these, the member, and the name of each."""


class Edited(NamedTuple):
    """A definition that is being written."""

    text: str
    view: str
    shape: Shape | None
    """What it may be made of; None: there is no form for it."""
    filled: Mapping[str, Any]
    unfinished: Unfinished | None
    focus: str
    """The field that is to be filled in next."""
    acts: action_form.Form | None
    """What a rule does. None: the form cannot say it, or it is no rule."""
    unknown: tuple[str, ...]
    """Keys that no field stands for."""

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
        content: dict[str, Any] = {**self.beside_the_form(), "focus": self.focus, "has_form": self.shape is not None}
        if self.view != FORM or self.shape is None:
            return content
        known = _known(asking, key)
        page = Page(self.unfinished, known, set())
        fields = shown_fields(self.shape, self.filled, page, names_of(key))
        content |= {"fields": fields, "unknown": self.unknown, "has_actions": key == EVENTS_KEY}
        offered = page.offered
        if self.acts is not None:
            content["acts"] = action_form.shown(action_form.fitted(self.acts), self.unfinished)
            offered = offered | action_form.named_in(self.acts)
        content["offered"] = dict(_offered(asking, offered))
        content["condition_fields"] = {
            kind: [field._asdict() for field in known(kind).values()] for kind in _kinds_of_conditions(fields)
        }
        return content


def definition_shape(catalogue: Catalogue, section: str, name: str = "") -> Shape | None:
    """What a definition of a section may be made of; None: there is no form for it."""
    is_member = section in BY_MEMBER
    within, by_name = f"{section}.{name}" if is_member else section, not is_member and section not in once_of(catalogue)
    shape = entry_shape(catalogue.sections, within, AS_YAML.get(section, ()), by_name)
    apart = APART.get(section, ())
    if shape is None or not apart:
        return shape
    return shape._replace(fields={key: field for key, field in shape.fields.items() if key not in apart})


def names_of(key: str) -> dict[str, str]:
    """Key -> the name of its field, of those that are not called after it."""
    return {DESCRIPTION: ABOUT, **({key: PREFIX} if key else {})}


def _kinds_of_conditions(fields: Sequence[Mapping[str, Any]]) -> set[str]:
    """Which conditions fields have, those inside of others too."""
    return {field["fields_of"] for field in with_inner(fields) if "fields_of" in field}


def _known(asking: Asking, key: str) -> Callable[[str], dict[str, Known]]:
    """Kind of conditions -> the fields that they may name, each asked for once."""

    @cache
    def known(kind: str) -> dict[str, Known]:
        if kind != "where":
            return fields_of(asking, key)
        everything = fields_of(asking, EVENTS_KEY)
        return {path: field for path, field in everything.items() if path_of(path)[0] == EVENT}

    return known


def edited(asking: Asking, shape: Shape | None, key: str, text: str) -> Edited:
    """The definition as it stands after what was sent; ``key`` is that of its conditions, empty for one without."""
    query = asking.query
    view = query.get(TO) or query.get(BY) or FORM
    if shape is None:
        return Edited(text, YAML, None, {}, None, "", None, ())
    if key == EVENTS_KEY and MODEL in (mapping_of(text) or {}):
        shape = shape._replace(fields={name: field for name, field in shape.fields.items() if name != key})
    acts: action_form.Form | None = None
    unfinished: Unfinished | None = None
    focus = ""
    if query.get(BY) == FORM:
        sent = _sent(asking, query, key)
        before = content_of(shape, text) or {}
        filled = {**filled_in(shape, before), **read_sent(shape, sent, names_of(key))}
        acts, at = _acts_filled(query)
        focus = [*sent.focus, at][0]
        try:
            text = _with_form(text, shape, key, filled)
        except Unfinished as problem:
            unfinished = problem
        try:
            text = _with_actions(text, acts)
        except Unfinished as problem:
            unfinished = unfinished or problem
        view = FORM if unfinished else view
    else:
        says = content_of(shape, text)
        if says is None:
            return Edited(text, YAML, shape, {}, None, "", None, ())
        filled = filled_in(shape, says)
    if acts is None and key == EVENTS_KEY:
        acts = action_form.form_of(value_in(text, ACTIONS))
    known = shape.names_known.union(_APART, (EVENTS_KEY,))
    unknown = tuple(name for name in content_of(shape, text) or {} if name not in known)
    return Edited(text, view, shape, filled, unfinished, focus, acts, unknown)


def mapping_of(text: str) -> dict[str, Any] | None:
    """What a text says, empty where nothing is written; None where it is wrong, or no mapping."""
    value = value_of(text)
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return value
    document = Document("")
    return {} if document.compose(text) is None and not document.problems else None


def content_of(shape: Shape, text: str) -> dict[str, Any] | None:
    """What a text says, by the fields of a shape; None as in `mapping_of`."""
    if not shape.is_bare:
        return mapping_of(text)
    document = Document("")
    root = document.compose(text)
    return None if document.problems else {} if root is None else {VALUE: value_of(text)}


def _with_form(text: str, shape: Shape, key: str, filled: Mapping[str, Any]) -> str:
    """The text with what was filled in. Raises `Unfinished`."""
    before = content_of(shape, text) or {}
    made = written(shape, filled, before, names_of(key))
    if repr(made) == repr(before):
        return text
    return body_of(made[VALUE]) if shape.is_bare else saying(text, made)


def _sent(asking: Asking, fields: Mapping[str, str], key: str) -> Sent:
    """What a form was filled in with."""

    @cache
    def offered(kind: str) -> list[str]:
        return _names(asking, kind)

    def meant(kind: str, text: str) -> str:
        names = offered(kind)
        return text if text in names else named_as(text, names) or text

    return Sent(fields, fields.get(DO, ""), _known(asking, key), meant, [])


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
    """What there is of what fields name, asked for only where a field needs it."""
    for what in sorted(wanted):
        yield what.replace(" ", "-"), suggested(_names(asking, what))


def _names(asking: Asking, what: str) -> list[str]:
    """The names of a kind that there are."""
    if what == NUMBER_FIELD:
        return [path for path, field in fields_of(asking, "").items() if field.type == "number"]
    if what not in OFFERED:
        return asking.engine.catalogue.names.offered(what, asking.engine, asking.session.workspace)
    before, (operation, member, name) = [*asking.calls], OFFERED[what]
    entries = asking.ask_or({}, operation).get(member, [])
    asking.calls[:] = before  # they fill the form; what the page shows is what is written
    return [entry[name] for entry in entries] if name else entries


def completed(asking: Asking, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The fields of a form that is sent to an operation, with what was filled in put into the text."""
    fields = dict(pairs)
    if fields.get(BY) != FORM:
        return pairs
    key, name, section = fields.get(KEY, ""), fields.get(TEXT, ""), fields.get(SECTION, "")
    shape = definition_shape(asking.engine.catalogue, section, fields.get("name", ""))
    if shape is None:
        return pairs
    sent = _sent(asking, {**fields, DO: ""}, key)
    try:
        before = fields.get(name, "").replace("\r\n", "\n")
        filled = {**filled_in(shape, content_of(shape, before) or {}), **read_sent(shape, sent, names_of(key))}
        text = _with_form(before, shape, key, filled)
        text = _with_actions(text, _acts_filled({**fields, DO: ""})[0])
    except Unfinished as problem:
        raise InvalidValue(f"{unfinished_part(problem)} is not finished: {problem}", param=problem.name) from None
    return [(field, text if field == name else value) for field, value in pairs]


def unfinished_part(problem: Unfinished) -> str:
    """What it is in which something is missing."""
    if problem.name.startswith(f"{action_form.PREFIX}."):
        return "an action"
    return "a condition" if problem.name.rpartition(".")[2] in ("field", "is", "value") else "the form"


def conditions_of(asking: Asking, fields: Mapping[str, str], key: str) -> Group:
    """The form that was filled in. Only a field that was chosen just now asks for those there are."""
    names = [name.removesuffix(".is") for name in fields if name.startswith(f"{PREFIX}.") and name.endswith(".is")]
    is_settled = all(fields.get(f"{name}.field", "") == fields.get(f"{name}.shown", "") for name in names)
    known = {} if is_settled else fields_of(asking, key)
    return fitted(read_fields(fields, {field.label: path for path, field in known.items()}), known)


def shown_conditions(asking: Asking, form: Group, key: str, unfinished: Unfinished | None) -> dict[str, Any]:
    """What the template shows of conditions: the ``form``, and the ``fields`` on offer."""
    known = fields_of(asking, key)
    return {
        "form": shown_with(form, known, unfinished),
        "fields": [field._asdict() for field in known.values()],
    }


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
        label = label_of(entry["text"], entry["within"])
        if label in labels or path_of(label) == tuple(steps):
            label = path
        labels.add(label)
        known[path] = Known(path, label, entry["type"], entry["samples"])
    return known
