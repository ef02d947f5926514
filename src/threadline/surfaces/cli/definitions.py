"""``threadline definitions export`` and ``delete``: what is made by hand written into a file, and taken out of a store.

Both work on a store that does not open, because something in it is declared in a file as well.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from threadline.capabilities.decide.drafts.by_hand import without
from threadline.capabilities.decide.drafts.sections import keys_in
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.foundation.definitions.versions import Change, Made, Version, newest, puts, text_of
from threadline.kernel.errors import Conflict, InvalidDefinition, NotFound, StoreBusy
from threadline.kernel.store import Batch, Store
from threadline.kernel.time import system_clock
from threadline.settings import Settings
from threadline.surfaces.cli.session import Session, store_option, url_option, user_name
from threadline.surfaces.python.call import call_of

FILE = "made-by-hand.yaml"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--version", type=click.IntRange(1), help="Write this version; default: the one in force.")
@store_option
@url_option
@click.pass_obj
def export(session: Session, folder: Path, version: int | None) -> None:
    """Write what is made by hand into DIR/made-by-hand.yaml, as a file of definitions.

    To go on with files: write it into the folder of your definitions, then empty the store with
    `threadline definitions delete --all`. A server reads both at once, and everything is as it was.
    """
    made = _exported(session, version)
    if not made.text:
        raise NotFound("nothing is made by hand")
    file = folder / FILE
    if file.exists() and file.read_text(encoding="utf-8") != made.text:
        raise Conflict(f"{file} is there already and says something else; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(made.text, encoding="utf-8")
    session.console.print(f"{file}: version {made.number}.", highlight=False, markup=False)


def _exported(session: Session, version: int | None) -> Made:
    client = session.client()
    if client is not None:
        with client:
            number = version or client.definitions.versions(limit=1).in_force
            return Made(number, client.definitions.version(version=number).text) if number else Made()
    settings = session.settings()
    if version is None:
        return session.composition.made_by_hand(settings)
    with closing(session.composition.open_store(settings, True)) as store:
        return Made(version, text_of(store, version))


@click.command()
@click.argument("section", required=False)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Delete all that is made by hand.")
@click.option("--note", default="", help="Why; it is kept with the version.")
@click.option("--anyway", is_flag=True, help="With --url: also where rules, alerts, broadcasts or people in it use it.")
@store_option
@url_option
@click.pass_obj
def delete(session: Session, section: str | None, name: str | None, everything: bool, note: str, anyway: bool) -> None:
    """Delete a definition that is made by hand: NAME of SECTION, such as segments vip or mail.templates welcome.

    A section that holds no names, such as points, is its own NAME. It is a new version: an earlier one can be gone back
    to. Without --url the store must not be open elsewhere, and `threadline apply` then recalculates everyone.
    """
    if everything is bool(section or name) or bool(section) is not bool(name):
        raise click.UsageError("give SECTION and NAME, or --all")
    client = session.client()
    if client is not None:
        asked = "definitions_go_back" if everything else "definitions_delete"
        values = {"version": 0} if everything else {"section": section, "name": name, "anyway": anyway}
        operation = next(operation for operation in session.composition.operations() if operation.name == asked)
        with client:
            done = client.call(call_of(operation), {**values, "note": note})
        session.console.print(f"Version {done.version} is in force, and everyone is recalculated.", highlight=False)
        return
    settings = session.settings()
    try:
        with closing(session.composition.open_store(settings, False)) as store:
            number = _deleted(session, settings, store, section or "", name or "", note)
    except StoreBusy as error:
        raise StoreBusy(str(error), hint=session.beside_a_server()) from None
    session.console.print(f"Version {number} is in force; run `threadline apply`.", highlight=False)


def _deleted(session: Session, settings: Settings, store: Store, section: str, name: str, note: str) -> int:
    """The number of the version without a definition, or without any where no section is named."""
    before = newest(store)
    text = without(before.text, section, name, keys_in(value_of(before.text), section, name)) if section else ""
    if (problem := _wrong(session, settings, text)) and not _wrong(session, settings, before.text):
        raise Conflict(f"it is still used: {problem}", hint="Change or delete what uses it first.")
    if text == before.text:
        raise NotFound("nothing is made by hand")
    removed = [Change("removed", section, name)] if section else []
    made = Version(
        number=before.number + 1,
        by=user_name(),
        at=system_clock(),
        note=note,
        changes=tuple(removed),
        changed=len(removed),
    )
    if store.commit([Batch(writes=puts(made, text))])[0] is not None:
        raise Conflict("another process has changed what is made by hand meanwhile; try again")
    return made.number


def _wrong(session: Session, settings: Settings, text: str) -> str:
    try:
        session.composition.catalogue(settings, text)
    except InvalidDefinition as error:
        return str(error)
    return ""
