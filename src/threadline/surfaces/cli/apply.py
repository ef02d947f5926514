"""``threadline apply``: changed definitions checked, frozen, and brought to everybody, in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from threadline.capabilities.foundation.definitions import Problem
from threadline.capabilities.foundation.events.causes import causes_of, consequences_of
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.engine.engine import Engine
from threadline.kernel.consequences import Consequences
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidDefinition, InvalidSetting, StoreBusy
from threadline.surfaces.cli.check import show_problems
from threadline.surfaces.cli.consequences import confirm, show
from threadline.surfaces.cli.printing import answer
from threadline.surfaces.cli.session import Session, json_option, store_option, url_option
from threadline.surfaces.cli.upkeep import counter
from threadline.surfaces.definition_checks import check, warnings
from threadline.surfaces.operation_calls import call

PAGE_PEOPLE = 500


@click.command()
@store_option
@url_option
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@click.option("--background", is_flag=True, help="Start a job on the server of --url, and do not wait for it.")
@click.option("--yes", is_flag=True, help="Do not check first what would be sent, and do not ask.")
@json_option
@click.pass_obj
def apply(session: Session, dry_run: bool, background: bool, yes: bool, as_json: bool) -> None:
    """Check the definitions, show what has changed, and recalculate everyone.

    States, segments, leaderboards and milestones are recalculated. A version of a rule can no longer be changed
    afterwards. The command counts first what the change would cause (entries, mails, webhooks), and asks before it
    sends more than a hundred of these. You can stop it at any time and run it again. If nothing has changed, it does
    nothing.

    With --url the server reloads its own definition files and does the same.
    """
    if background and dry_run:
        raise click.UsageError("--dry-run does nothing that could be left to a server; leave --background out")
    client = session.client()
    if background and client is None:
        raise click.UsageError("--background needs a server that goes on working; name one by --url")
    if client is not None:
        with client:
            if background:
                changes = client.definitions.reload()
                _left_to_server(session, changes, client.definitions.apply_in_background(yes=yes), as_json=as_json)
                return
            # Without a reload, what is shown is what the server goes by already.
            changes = client.definitions.changes() if dry_run else client.definitions.reload()
            foretell = None if yes else client.definitions.foretell
            _run(session, changes, (), None if dry_run else client.definitions.apply, foretell, as_json=as_json)
        return
    result = check(session.given, session.composition.catalogue, session.composition.made_by_hand)
    if result.problems:
        raise InvalidDefinition("\n".join(map(str, result.problems)))
    settings = session.settings()
    if "://" not in settings.store and not Path(settings.store).exists():
        raise InvalidSetting(
            f"there is no store at {settings.store}",
            hint="The definitions are right; `threadline check` needs no store.",
        )
    try:
        with session.engine(readonly=dry_run) as engine:
            page = None if dry_run else partial(_call, session, engine, "definitions_apply")
            warned = warnings(engine.catalogue, engine.log)
            foretell = None if yes else partial(_call, session, engine, "definitions_foretell")
            _run(session, _call(session, engine, "definitions_changes"), warned, page, foretell, as_json=as_json)
    except StoreBusy as error:
        raise StoreBusy(str(error), hint=session.beside_a_server()) from None


def _call(session: Session, engine: Engine, operation: str, **params: Any) -> Any:
    return call(engine.catalogue.operation(operation), session.context(engine), params, strict=True)


def _run(
    session: Session,
    changes: Any,
    warned: Sequence[Problem],
    page: Callable[..., Any] | None,
    foretell: Callable[..., Any] | None,
    *,
    as_json: bool,
) -> None:
    """Show what has changed and what that causes, and bring everybody up to it ``page`` by page, or only show it."""
    shown = msgspec.to_builtins(changes)
    if not as_json:
        show_problems(session.console, (), warned)
        _show(session.console, shown)
    if foretell is not None:
        consequences = _foretold(session, foretell)
        if as_json:
            shown["causes"] = msgspec.to_builtins(causes_of(consequences))
        elif consequences != Consequences():
            show(session.console, consequences)
        if page is not None:
            confirm(consequences, yes=False)
    people = {} if page is None else _apply(session, page)
    if as_json:
        answer({**shown, "warnings": warned, "people": people}, session.console, as_json=True)
        return
    for step, count in people.items():
        session.console.print(f"{step}: {counted(count, 'person')} brought up to date", highlight=False)
    if page is not None or not shown["stale"]:
        session.console.print("Everything is as the definitions say.")


def _left_to_server(session: Session, changes: Any, job: JobView, *, as_json: bool) -> None:
    shown = msgspec.to_builtins(changes)
    if as_json:
        answer({**shown, "job": job.id}, session.console, as_json=True)
        return
    _show(session.console, shown)
    session.console.print(f"The server recalculates everyone; watch it with: threadline jobs watch {job.id}")


def _foretold(session: Session, page: Callable[..., Any]) -> Consequences:
    """What bringing everybody up to date would cause."""
    consequences, cursor = Consequences(), ""
    with counter(session.console, "people") as count:
        while True:
            foretold = page(cursor=cursor, limit=PAGE_PEOPLE)
            consequences = consequences.with_more(consequences_of(foretold.causes))
            count(foretold.people)
            cursor = foretold.next
            if not cursor:
                return consequences


def _apply(session: Session, page: Callable[..., Any]) -> dict[str, int]:
    """Step -> how many people were looked at in it."""
    people: dict[str, int] = {}
    cursor = ""
    with counter(session.console, "people") as count:
        while True:
            done = page(cursor=cursor, limit=PAGE_PEOPLE)
            if done.step:
                people[done.step] = people.get(done.step, 0) + done.people
            count(done.people)
            cursor = done.next
            if not cursor:
                return people


def _show(console: Console, changes: dict[str, Any]) -> None:
    for change in changes["changes"]:
        name = ".".join(filter(None, (change["section"], change["name"])))
        console.print(f"{change['change']:8} {name}", highlight=False, soft_wrap=True)
    if changes["projections"]:
        console.print(f"folded again for everybody: {', '.join(changes['projections'])}", highlight=False)
    if others := [step for step in changes["stale"] if step != "people"]:
        console.print(f"refreshed for everybody: {', '.join(others)}", highlight=False)
