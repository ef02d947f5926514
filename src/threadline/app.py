"""The composition root: settings and definitions in, an engine on its store with the whole catalogue out."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.people.definition import rules
from threadline.engine.catalogue import Catalogue, discover
from threadline.engine.dispatch import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.operation import Operation
from threadline.kernel.sender import Sender
from threadline.kernel.store import Store
from threadline.kernel.time import Clock, system_clock
from threadline.senders.console import ConsoleSender
from threadline.settings import Settings, definition_files, definitions_file, load, section
from threadline.surfaces.composition import Composition
from threadline.surfaces.python import Threadline
from threadline.surfaces.rereading import READERS

MEMORY = "memory:"
"""Instead of a path: a store that lives as long as its process."""

StorePath = str | os.PathLike[str]


def open(
    store: StorePath | None = None,
    *,
    workspace: str | None = None,
    source: str = "direct",
    settings: Settings | None = None,
    clock: Clock = system_clock,
    definitions: StorePath | None = None,
    readonly: bool = False,
) -> Threadline:
    """Open a store in this process: a path, ``"memory:"``, or None for the one that the settings name.

    A file that is not there is created. One process writes at a time; with ``readonly`` it opens beside a writer.
    ``definitions`` is a YAML file or a folder of them, by default `threadline.yaml` beside the store. Raises
    `StoreBusy` if another process writes to it, `InvalidSetting` and `InvalidDefinition` for what cannot be read.
    """
    chosen = _settings(store, settings, definitions)
    engine = open_engine(None, chosen, clock, readonly=readonly)
    return Threadline(engine, workspace=workspace or chosen.workspace, source=source)


def open_engine(
    store: StorePath | None = None,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    definitions: StorePath | None = None,
    *,
    readonly: bool = False,
) -> Engine:
    """The engine on a store, without a surface; see `open`."""
    chosen = _settings(store, settings, definitions)
    file = definitions_file(chosen)
    # Definitions are read first: a mistake in them must not leave a store open, or create one.
    made = catalogue(definition_files(file), file)
    engine = Engine(_open_store(chosen, readonly), made, clock)
    engine.readers.update(READERS)
    engine.credentials.cache_seconds = chosen.credential_cache_seconds
    write_keys, tokens = _pairs(chosen.write_keys, "default"), _pairs(chosen.tokens, "settings")
    engine.credentials.add_fixed(write_keys, tokens, chosen.workspace)
    return engine


def catalogue(files: Sequence[Path] = (), root: Path | None = None) -> Catalogue:
    """Everything that ships, shaped by what these files of definitions declare."""
    definitions = Definitions.load(files)
    for name in ("identifiers", "settings"):
        definitions.section(name)  # read as plain data, by `section`
    found = discover(definitions=definitions)
    definitions.refuse_unknown()
    return Catalogue(found, rules(section(root, "identifiers")))


def operations() -> tuple[Operation, ...]:
    """Every operation that ships, by name."""
    return catalogue().operations


def composition() -> Composition:
    """What the command line needs of this module."""
    return Composition(_open_for_program, open_dispatcher, operations)


def open_dispatcher(engine: Engine) -> Dispatcher:
    """What makes timers fire and effects leave. Only effects for the console have a sender so far."""
    senders: list[Sender] = [ConsoleSender(sys.stderr)]
    return Dispatcher(engine, {sender.kind: sender for sender in senders}, f"{socket.gethostname()}/{os.getpid()}")


def _open_for_program(settings: Settings, readonly: bool) -> Engine:
    return open_engine(None, settings, readonly=readonly)


def _settings(store: StorePath | None, settings: Settings | None, definitions: StorePath | None) -> Settings:
    given = {
        "store": None if store is None else os.fspath(store),
        "definitions": None if definitions is None else os.fspath(definitions),
    }
    return load(given, onto=settings) if settings is not None else load(given)


def _open_store(settings: Settings, readonly: bool) -> Store:
    if settings.store == MEMORY:
        from threadline.stores.memory import MemoryStore

        return MemoryStore()
    if "://" in settings.store:
        raise InvalidSetting(
            f"store: {settings.store.split('://')[0]}:// is not a store we know; give a path or {MEMORY!r}"
        )
    from threadline.stores.sqlite import SqliteStore

    return SqliteStore(
        settings.store,
        page_cache_bytes=settings.page_cache_bytes,
        wal_pages_max=settings.wal_pages_max,
        busy_timeout_seconds=settings.busy_timeout_seconds,
        readonly=readonly,
    )


def _pairs(text: str, default: str) -> list[tuple[str, str]]:
    """(name, secret) of ``secret`` and ``name=secret``, separated by commas."""
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, secret = part.partition("=")
        pairs.append((name, secret) if equals else (default, part))
    return pairs
