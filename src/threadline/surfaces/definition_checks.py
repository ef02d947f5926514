"""Definitions as a surface checks them: every mistake in all files, settings included, and warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from threadline.capabilities.decide.drafts import warned as drafts
from threadline.capabilities.foundation.definitions import Definitions, Problem
from threadline.capabilities.foundation.definitions.files import in_order_of
from threadline.capabilities.foundation.definitions.problem import problem_of
from threadline.capabilities.foundation.definitions.versions import Made
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.reading.event_log import EventLog
from threadline.kernel.errors import InvalidDefinition, InvalidSetting, StoreBusy, StoreDamaged, Unavailable
from threadline.settings import Settings, definition_files, definitions_file, load

MadeOf = Callable[[Settings, str], Catalogue]
"""The catalogue of the files that settings name, and of what is made by hand. Raises `InvalidDefinition`."""


class Checked(NamedTuple):
    """What was read of definitions."""

    files: Sequence[Path]
    problems: Sequence[Problem]
    catalogue: Catalogue | None
    """None where there are problems."""
    by_hand: Made | None = Made()
    """What is made by hand; None: there is a store, and it cannot be read."""


def check(
    given: Mapping[str, Any], made_of: MadeOf, made_by_hand: Callable[[Settings], Made] = lambda settings: Made()
) -> Checked:
    """Read all definitions that settings like these lead to, and what is made by hand in the store, if there is one.

    Raises `InvalidSetting` for a setting that stands in no file of definitions.
    """
    without_files = load(given, files=False)
    files = definition_files(definitions_file(without_files))
    noted: list[Problem] = []
    settings, made = without_files, None
    try:
        settings = load(given)
    except InvalidSetting as error:
        noted += map(problem_of, str(error).split("\n"))
    by_hand: Made | None = None
    with suppress(Unavailable, StoreBusy, StoreDamaged):
        by_hand = made_by_hand(settings)
    try:
        made = made_of(settings, "" if by_hand is None else by_hand.text)
    except InvalidDefinition as error:
        noted += problems_in(error)
    problems = in_order_of([*map(str, files)], {str(problem): problem for problem in noted}.values())
    return Checked(files, problems, None if problems else made, by_hand)


def problems_in(error: InvalidDefinition) -> list[Problem]:
    """What an error says, line by line."""
    return [problem_of(line, error.columns.get(line, 0)) for line in str(error).split("\n")]


def settings_in_force(given: Mapping[str, Any], made_of: MadeOf) -> Settings:
    """The settings. A wrong one in a file of definitions is told with every other mistake in the files."""
    try:
        return load(given)
    except InvalidSetting as error:
        problems = check(given, made_of).problems
        if len(problems) > len(str(error).split("\n")):
            raise InvalidDefinition("\n".join(map(str, problems))) from None
        raise


def warnings(made: Catalogue, log: EventLog | None = None) -> list[Problem]:
    """What is in the definitions of a catalogue and hardly meant, as far as a store's log shows, if there is one."""
    definitions = made.definitions
    assert isinstance(definitions, Definitions), "what a surface opens was made of files"
    return drafts.warnings(made, definitions, None if log is None else log.names_sent)
