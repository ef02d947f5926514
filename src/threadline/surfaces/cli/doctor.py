"""``threadline doctor``: what an operator would look at first, looked at."""

from __future__ import annotations

import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from threadline.capabilities.foundation.definitions.versions import Made
from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.finding import Finding
from threadline.kernel.time import MINUTE, format_time, parse_time, system_clock
from threadline.settings import Settings, definition_files, definitions_file, load, without_secret
from threadline.surfaces.cli.printing import visible, visible_lines
from threadline.surfaces.cli.session import Session, own_store_option
from threadline.surfaces.definition_checks import warnings
from threadline.surfaces.version import package_version

FREE_BYTES_MIN = 1_000_000_000
READ_THROUGH_BYTES_MAX = 1_000_000_000
WAL_GROWTH_MAX = 4
"""A write-ahead log this many times longer than the setting asks for is not being moved into the file."""
WAITING_MAX = 15 * MINUTE
_PLAUSIBLE = parse_time("2025-01-01")
_WAITS_BY_THE_CLOCK = (
    "this Python waits by it: if it is set back, workers stand still for as long; "
    "use one that was built for glibc 2.30 or newer"
)
_PARTS = ("apsw", "psycopg", "msgspec", "starlette", "uvicorn", "uvloop", "httptools")
DEFINITIONS = "definitions"
_SIGNS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "fault": "[red]fault[/]"}


@click.command()
@own_store_option
@click.pass_obj
def doctor(session: Session) -> None:
    """Check the store, its lock, versions, the disk, the clock and the definitions. Exits 1 for any fault."""
    settings = session.settings()
    findings = [*_surroundings(settings), *_definitions(session, settings)]
    if any(finding.what == DEFINITIONS and finding.sign == "fault" for finding in findings):
        findings.append(Finding("store", "note", "not looked at: it cannot be opened before the definitions are right"))
    else:
        findings += _store(session, settings)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for finding in findings:
        shown = visible_lines if finding.what == DEFINITIONS else visible
        table.add_row(_SIGNS[finding.sign], finding.what, Text(shown(finding.seen)))
    session.console.print(table)
    if any(finding.sign == "fault" for finding in findings):
        raise click.exceptions.Exit(1)


def _surroundings(settings: Settings) -> Iterator[Finding]:
    parts = " ".join(f"{name} {installed}" for name in _PARTS if (installed := _version(name)))
    yield Finding("versions", "ok", f"threadline {package_version()}, Python {platform.python_version()}, {parts}")
    if not _is_elsewhere(settings):
        yield _disk(Path(settings.store).absolute().parent)
    yield _clock(system_clock())


def _clock(now: int) -> Finding:
    shown = format_time(now)
    if now <= _PLAUSIBLE:
        return Finding("clock", "fault", f"{shown} cannot be right; set the clock")
    # What's New In Python 3.11, threading: without it, waits with a time limit end by the system's clock.
    if sys.platform == "linux" and not sysconfig.get_config_var("HAVE_SEM_CLOCKWAIT"):
        return Finding("clock", "note", f"{shown}; {_WAITS_BY_THE_CLOCK}")
    return Finding("clock", "ok", shown)


def _is_elsewhere(settings: Settings) -> bool:
    """Whether the store is on a server: then the disk, the file and its lock are the server's."""
    return "://" in settings.store


def _disk(folder: Path) -> Finding:
    if not folder.is_dir():
        return Finding("disk", "fault", f"there is no folder {folder}; create it")
    free = shutil.disk_usage(folder).free
    return Finding("disk", "ok" if free >= FREE_BYTES_MIN else "note", f"{free / 1e9:,.1f} GB free in {folder}")


def _definitions(session: Session, settings: Settings) -> Iterator[Finding]:
    file = definitions_file(settings)
    seen = ", ".join(map(str, definition_files(file))) or "none but those that ship"
    by_hand = Made()
    with suppress(ThreadlineError):  # what is wrong with the store is told by itself
        by_hand = session.composition.made_by_hand(settings)
    seen += f", and version {by_hand.number} of what is made by hand" if by_hand.number else ""
    # With a store of their own, unless they go with what is in it: they are read whether there is one yet or not.
    alone = {"store": "memory:", "definitions": str(file or ""), "cache": ""}
    try:
        chosen = settings if by_hand.number else load(alone, onto=settings)
        engine = session.composition.open_engine(chosen, bool(by_hand.number))
    except ThreadlineError as error:
        yield Finding(DEFINITIONS, "fault", _message(error))
        return
    try:
        yield Finding(DEFINITIONS, "ok", seen)
        yield _server(session, engine, settings)
    finally:
        engine.close()


def _server(session: Session, engine: Engine, settings: Settings) -> Finding:
    """Whether settings, secrets and extras let a server start: it is put together, and not run."""
    from threadline.surfaces.http.server.application import Application

    try:
        session.composition.open_dispatcher(engine, settings)
        Application(engine, settings, limits=session.composition.open_limits(settings))
    except ThreadlineError as error:
        return Finding("server", "fault", _message(error))
    return Finding("server", "ok", "can be started with these settings")


def _store(session: Session, settings: Settings) -> Iterator[Finding]:
    shown = without_secret(settings.store)
    if not _is_elsewhere(settings) and not Path(settings.store).exists():
        yield Finding("store", "note", f"{shown} does not exist yet; the first command that writes creates it")
        return
    try:
        with session.engine(readonly=True) as engine:
            stats = engine.store.stats()
            notes = [Finding(DEFINITIONS, "note", str(warning)) for warning in warnings(engine.catalogue, engine.log)]
            findings = [*notes, *engine.doctor.findings(system_clock()), Finding("store", "ok", shown)]
            faults = _faults(engine, settings, stats)
    except ThreadlineError as error:
        yield Finding("store", "fault", _message(error))
        return
    yield from findings
    if not _is_elsewhere(settings):
        yield _content(faults)
        yield from _file(session, settings, stats)


def _file(session: Session, settings: Settings, stats: Mapping[str, int]) -> Iterator[Finding]:
    """The files of an embedded store, and who writes to them."""
    bound = settings.wal_pages_max * stats.get("page_bytes", 4_096) * WAL_GROWTH_MAX
    ahead_bytes = stats.get("wal_bytes", 0)
    shown = f"{ahead_bytes:,} bytes not yet in the file"
    yield Finding("log ahead", "note" if ahead_bytes > bound else "ok", shown)
    mark, exposed = session.composition.files(settings)
    yield Finding("mark", "ok", mark)
    if exposed:
        names = ", ".join(file.name for file in exposed)
        yield Finding("files", "note", f"others than their owner may read or write {names}; chmod 600 them")
    yield _lock(session, settings)


def _faults(engine: Engine, settings: Settings, stats: Mapping[str, int]) -> list[str] | None:
    """What is wrong with the file; None where it is too long to be read through while somebody waits."""
    if _is_elsewhere(settings) or stats.get("file_bytes", 0) > READ_THROUGH_BYTES_MAX:
        return None
    return engine.store.integrity()


def _content(faults: list[str] | None) -> Finding:
    if faults is None:
        return Finding("content", "note", "too large to be checked here; run `threadline verify`")
    return Finding("content", "fault" if faults else "ok", faults[0] if faults else "read through, and whole")


def _lock(session: Session, settings: Settings) -> Finding:
    # The lock is looked at and not taken: an engine that opens for writing freezes the versions of what is declared.
    try:
        writer = session.composition.writer(settings)
    except (ThreadlineError, OSError) as error:
        return Finding("lock", "fault", _message(error))
    return Finding("lock", "ok", f"process {writer} writes" if writer else "no other process writes")


def _message(error: Exception) -> str:
    """What is wrong and, where it is known, what to do."""
    hint = getattr(error, "hint", "")
    return f"{error}. {hint}" if hint else str(error)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
