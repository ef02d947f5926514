"""The screen of the console: the flags, their rules, and what one person gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Asking, Screen


def _load(asking: Asking) -> Mapping[str, Any]:
    person, given, problem = asking.query.get("person", "").strip(), {}, ""
    if person:
        try:
            given = {each["flag"]: each for each in asking.ask("flags_of", id=person)["flags"]}
        except ThreadlineError as error:
            problem = str(error)
    return {"flags": asking.ask("flags_list")["flags"], "person": person, "given": given, "problem": problem}


FLAGS_SCREEN = Screen(
    name="flags",
    path="/flags",
    title="Flags",
    template="threadline_flags:flags.html",
    load=_load,
    operation="flags_list",
    summary="Who is shown what, by what is known of them now.",
    area="Rules and features",
    order=26,
)
