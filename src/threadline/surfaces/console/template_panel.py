"""The fields of what is chosen of a mail template: of a block, of a language, or of the template itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from threadline.capabilities.foundation.definitions.declaring import struct
from threadline.capabilities.foundation.definitions.nested_splicing import value_at
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.journeys.outline import path_of
from threadline.capabilities.reach.mail.blocks import BLOCKS
from threadline.capabilities.reach.mail.definition import Wording
from threadline.kernel.errors import InvalidValue
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.editing import BY, FORM, definition_shape, unfinished_part
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.item_panel import OF, Panel, panel_at
from threadline.surfaces.console.shapes import Shape, shape_of, with_fields
from threadline.surfaces.console.template_editing import CALLED, is_block_of, is_language_of

SECTION = "mail.templates"
FIRST = ("subject", "preheader", "sender", "topic", "transactional", "accent", "mjml", "html", "text", *CALLED, "align")
"""Fields that are shown at once though they may be left empty."""
ASIDE = ("blocks", "languages")
"""What has no field in the form: blocks are shown as a mail, languages beside it."""
BODIES = ("html", "mjml")
_WORDING = struct(Wording)


def panel_of(asking: Asking, state: Drawn, *, is_new: bool = False) -> Panel:
    """The panel of what is chosen; ``is_new``: it was chosen just now, so that no fields of it were sent."""
    return panel_at(asking, state, _shape_at(asking, state), is_new=is_new)


def completed(asking: Asking, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The fields of a template that is sent to an operation, with what was filled in put into the text."""
    fields = dict(pairs)
    if OF not in fields or fields.get("section") != SECTION:
        return pairs
    state = Drawn(fields.get("text", "").replace("\r\n", "\n"), fields[OF])
    panel = panel_of(replace(asking, query={**fields, BY: FORM}), state)
    if (problem := panel.unfinished) is not None:
        raise InvalidValue(f"{unfinished_part(problem)} is not finished: {problem}", param=problem.name)
    return [(field, panel.text if field == "text" else value) for field, value in pairs]


def _shape_at(asking: Asking, state: Drawn) -> Shape | None:
    """The shape of what is chosen, without the blocks in it."""
    values, path = value_of(state.text), path_of(state.at)
    value = value_at(values, path)
    if is_block_of(state.text, state.at):
        shape = shape_of(BLOCKS.schema["items"], BLOCKS.defs)
        kind = next((kind for kind in CALLED if kind in value), "")
        if kind in ("", "columns"):
            return None
        names = [kind, *(["align"] if kind in ("heading", "text", "button", "picture") else [])]
        return with_fields(shape, names, kind)
    if is_language_of(state.text, state.at):
        shape = shape_of(_WORDING.schema, _WORDING.defs)
    else:
        known = definition_shape(asking.engine.catalogue, SECTION)
        if known is None:
            return None
        shape = known
    apart = [name for name in BODIES if isinstance(value, dict) and "blocks" in value and name not in value]
    return with_fields(shape, [name for name in shape.fields if name not in (*ASIDE, *apart)], "")
