"""The fields of what is chosen in a drawing: of a step, of a branch of a choice, or of the journey itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from threadline.capabilities.foundation.definitions.nested_splicing import Path, value_at
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.journeys.outline import KINDS, path_of
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.kernel.errors import InvalidValue
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.conditions_yaml import with_value
from threadline.surfaces.console.editing import BY, FORM, definition_shape, mapping_of, unfinished_part
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.item_panel import OF, Panel, panel_at
from threadline.surfaces.console.journey_editing import is_step_of
from threadline.surfaces.console.shapes import Shape, shape_of, with_fields

STEP = {"$ref": "#/$defs/journey_step"}
ENTIRE = "steps"
"""What the journey itself has no field for: they are drawn."""
FIRST = ("trigger", "reentry", *KINDS, "when")
"""Fields that are shown at once though they may be left empty."""


def panel_of(asking: Asking, state: Drawn, *, is_new: bool = False) -> Panel:
    """The panel of what is chosen; ``is_new``: it was chosen just now, so that no fields of it were sent."""
    return panel_at(asking, state, _shape_at(asking, state), is_new=is_new)


def is_branch(state: Drawn) -> bool:
    """Whether one path of a choice is chosen, and has fields."""
    return _is_branch(path_of(state.at)) and is_step_of(state.text, state.at)


def completed(asking: Asking, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The fields of a drawing that is sent to an operation, with what was filled in put into the text."""
    fields = dict(pairs)
    if OF not in fields or fields.get("section") != JOURNEYS:
        return pairs
    state = Drawn(fields.get("text", "").replace("\r\n", "\n"), fields[OF])
    panel = panel_of(replace(asking, query={**fields, BY: FORM}), state)
    if (problem := panel.unfinished) is not None:
        raise InvalidValue(f"{unfinished_part(problem)} is not finished: {problem}", param=problem.name)
    text = raised(panel.text, in_force(asking, fields.get("name", "")))
    return [(field, text if field == "text" else value) for field, value in pairs]


def in_force(asking: Asking, name: str) -> str:
    """The text of the journey in force of this name; empty: there is none. The page does not show this question."""
    calls = len(asking.calls)
    text: str = asking.ask_or({"text": ""}, "definitions_show", section=JOURNEYS, name=name)["text"] if name else ""
    del asking.calls[calls:]
    return text


def raised(text: str, before: str) -> str:
    """The text with the next version where it says something else than the journey in force, under its version: people
    who are in it keep what they began with."""
    there, here = mapping_of(before) or {}, mapping_of(text) or {}
    version, own = there.get("version", 1), here.get("version", 1)
    is_same = {**there, **_ASIDE} == {**here, **_ASIDE}
    if not before or is_same or not isinstance(version, int) or not isinstance(own, int) or own > version:
        return text
    return with_value(text, "version", version + 1)


_ASIDE = {"version": None, "description": None}
"""What may change under one version."""


def _is_branch(path: Path) -> bool:
    return len(path) > 1 and path[-2] == "choice"


def _shape_at(asking: Asking, state: Drawn) -> Shape | None:
    """The shape of what is chosen, without the steps in it."""
    if not state.at:
        shape = definition_shape(asking.engine.catalogue, JOURNEYS)
        return shape and with_fields(shape, [name for name in shape.fields if name != ENTIRE], "")
    if not is_step_of(state.text, state.at):
        return None
    defs = {name: inner for section in asking.engine.catalogue.sections for name, inner in section.defs.items()}
    shape = shape_of(STEP, defs)
    path = path_of(state.at)
    value = value_at(value_of(state.text), path)
    if _is_branch(path):
        branch = shape.fields["choice"].item
        return branch and with_fields(branch, ["when"], "")
    kind = next((kind for kind in KINDS if isinstance(value, dict) and kind in value), "")
    names = [name for name in (kind, "id") if name and name != "choice"]
    return with_fields(shape, names, kind) if isinstance(value, dict) else None
