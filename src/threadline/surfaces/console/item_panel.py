"""The fields of what is chosen in an editor whose text is shown as a picture or a mail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from threadline.capabilities.foundation.definitions.nested_splicing import item_text, with_item_instead
from threadline.capabilities.reach.journeys.outline import path_of
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.condition_form import Unfinished
from threadline.surfaces.console.editing import BY, FORM, Edited, edited
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.shapes import Shape

OF = "_of"
"""Field: what the fields are of, by its path; empty: all of it. It is not there where no fields were shown."""


class Panel(NamedTuple):
    """What is chosen, with its fields, and the whole text after they were filled in."""

    state: Drawn
    text: str
    edited: Edited | None
    """None: what is chosen has no fields."""

    @property
    def unfinished(self) -> Unfinished | None:
        """What is missing in a field."""
        return self.edited.unfinished if self.edited is not None else None

    def shown(self, asking: Asking) -> dict[str, Any]:
        """What the template shows of the fields."""
        if self.edited is None:
            return {"fields": [], "offered": {}, "condition_fields": {}}
        fields = self.edited.shown(asking, "")
        return {name: fields.get(name) for name in ("fields", "offered", "condition_fields", "focus")}


def panel_at(asking: Asking, state: Drawn, shape: Shape | None, *, is_new: bool) -> Panel:
    """The panel of what is chosen, which has this shape; ``is_new``: it was chosen just now, so that no fields of it
    were sent."""
    if shape is None:
        return Panel(state, state.text, None)
    path = path_of(state.at)
    own = item_text(state.text, path) if path else state.text
    is_sent = not is_new and asking.query.get(BY) == FORM and asking.query.get(OF, "") == state.at
    made = edited(asking if is_sent else replace(asking, query={}), shape, "", own)
    text = state.text
    if made.text != own:
        text = with_item_instead(text, path, made.text) if path else made.text
    return Panel(state._replace(text=text), text, made)
