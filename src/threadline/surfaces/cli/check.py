"""``threadline check``: every mistake in the definitions, and warnings, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from threadline.capabilities.foundation.definitions import Problem
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidDefinition, ThreadlineError
from threadline.settings import Settings
from threadline.settings.parts import lacking
from threadline.surfaces.cli.printing import answer, visible
from threadline.surfaces.cli.session import Session, json_option, store_option
from threadline.surfaces.definition_checks import Checked, problems_in, warnings
from threadline.surfaces.definition_checks import check as checked

UNREAD = "the store cannot be read now, so what is made by hand in it was not checked with the files"


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@store_option
@json_option
@click.pass_obj
def check(session: Session, path: Path | None, as_json: bool) -> None:
    """Check all definitions: every mistake with its file, line and column. Exits 1 if there is one.

    PATH is a file or a folder; by default that of the setting `definitions`. No store is needed. If there is one,
    definitions that were made by hand in it are checked together with the files. If it is embedded, the command also
    warns of names that none of its events has.
    """
    session.given.update({"definitions": str(path)} if path is not None else {})
    result = checked(session.given, session.composition.catalogue, session.composition.made_by_hand)
    problems, warned = _by_the_store(session, result)
    problems = [*problems, *(Problem("", 0, sentence) for sentence in _lacking(session))]
    by_hand = -1 if result.by_hand is None else result.by_hand.number
    if by_hand < 0:
        warned = [*warned, Problem("", 0, UNREAD)]
    if as_json:
        content = {"files": list(map(str, result.files)), "by_hand": max(by_hand, 0)}
        content |= {"problems": problems, "warnings": warned}
        answer(content, session.console, as_json=True)
    else:
        show_problems(session.console, problems, warned)
        files, mistakes = counted(len(result.files), "file"), counted(len(problems), "mistake")
        store = f" and version {by_hand} of what is made by hand" if by_hand > 0 else ""
        session.console.print(f"{files}{store}: {mistakes}, {counted(len(warned), 'warning')}.", highlight=False)
    if problems:
        raise click.exceptions.Exit(1)


def _by_the_store(session: Session, result: Checked) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Problems and warnings, with what the embedded store knows, if there is one: versions seen and events sent."""
    if result.catalogue is None:
        return result.problems, ()
    try:
        settings = session.settings()
        if _is_embedded(settings):
            with session.engine(readonly=True) as engine:
                return (), warnings(engine.catalogue, engine.log)
    except InvalidDefinition as error:  # a version that has changed since the store first saw it
        return problems_in(error), warnings(result.catalogue)
    except ThreadlineError:
        pass  # what is wrong with the store is no matter of the definitions
    return (), warnings(result.catalogue)


def _lacking(session: Session) -> Sequence[str]:
    """What the settings need that is not installed. Settings that cannot be read are told by what reads them."""
    try:
        return lacking(session.settings())
    except ThreadlineError:
        return ()


def _is_embedded(settings: Settings) -> bool:
    return "://" not in settings.store and Path(settings.store).exists()


def show_problems(console: Console, problems: Iterable[Problem], warned: Iterable[Problem]) -> None:
    """Print each on a line of its own, as an editor reads it."""
    for style, name, lines in (("red", "error", problems), ("yellow", "warning", warned)):
        for line in lines:
            column = f"{line.column}:" if line.column else ""
            location = f"{line.file}:{line.line}:{column} " if line.file else ""
            console.print(Text.assemble(visible(location), (name, style), f": {visible(line.message)}"), soft_wrap=True)
