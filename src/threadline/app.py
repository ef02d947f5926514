"""The composition root: settings and definitions in, an engine on its store with the whole catalogue out.

The only file that knows every part: which store a URL names, which senders and capabilities there are. Programs use
`open` (also ``threadline.open``); what runs in the background, as ``threadline serve`` does, is opened beside it:

    >>> from threadline.app import open_dispatcher, open_engine
    >>> from threadline.settings import load
    >>> settings = load({"store": "memory:"})
    >>> engine = open_engine(settings=settings)
    >>> dispatcher = open_dispatcher(engine, settings)
    >>> engine.close()

Options of `open` and `open_engine`: ``settings``, ``definitions``, ``readonly``, ``capabilities`` (your own), ``clock``
(for tests). `catalogue` answers what is declared, without a store.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.versions import Made, newest
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.confined_process import ConfinedProcess
from threadline.engine.credentials import fixed_credentials
from threadline.engine.definition_history import refuse_changed
from threadline.engine.delivery.dispatcher import Background, Dispatcher
from threadline.engine.delivery.feed_consumer import FeedConsumer, FeedHandler, FeedWorker
from threadline.engine.delivery.leases import Leases
from threadline.engine.engine import Engine, Surroundings
from threadline.engine.erasure.applying import keep_beside
from threadline.engine.erasure.certificates_file import LedgerFile
from threadline.engine.erasure.erased_ids import erased_since
from threadline.engine.folding.capabilities import Capabilities, chosen, installed
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import check_entry
from threadline.engine.machine import memory_bytes
from threadline.engine.maintenance.applying import fingerprint
from threadline.engine.maintenance.move import refuse_unfinished
from threadline.engine.maintenance.scrub import Scrub, ScrubWorker
from threadline.engine.public_address import PublicAddress
from threadline.engine.recording.working_set import people_cache_bytes
from threadline.engine.stand_ins import NoAnalytics, NoIndex
from threadline.engine.tracing import open_tracing
from threadline.exports.analytics.answering_process import AnsweringProcess, LogEnd
from threadline.exports.analytics.first_use import DuckAnalytics
from threadline.exports.catching_up import CatchUpWorker, KeepsUp
from threadline.kernel.analytics import AnalyticsPort
from threadline.kernel.capability import Capability
from threadline.kernel.errors import InvalidSetting, StoreDamaged
from threadline.kernel.extra import from_source
from threadline.kernel.lists import comma_separated
from threadline.kernel.object_storage import Storage
from threadline.kernel.operation import Operation
from threadline.kernel.ports import PeopleValues
from threadline.kernel.search import SearchIndex
from threadline.kernel.sender import Sender, SenderPorts
from threadline.kernel.store import Store
from threadline.kernel.time import Clock, system_clock
from threadline.senders.web import Web
from threadline.settings import (
    SETTINGS_SECTION,
    Settings,
    cache_lifetimes,
    definition_files,
    definitions_file,
    from_environment,
    load,
    second_factor_roles,
    without_secret,
)
from threadline.surfaces.composition import Composition, Copied, IcebergDoor, LakeDoor, OnProgress, SharedLimits
from threadline.surfaces.definition_checks import settings_in_force
from threadline.surfaces.log_lines import log_lines
from threadline.surfaces.rereading import forms, readers

if TYPE_CHECKING:
    from threadline.surfaces.python.embedded import Threadline

MEMORY = "memory:"
"""Instead of a path: a store that lives as long as its process."""
POSTGRES = ("postgresql", "postgres")
"""Schemes of a PostgreSQL database's URL: libpq takes both."""

DYNAMODB = "dynamodb"
"""Scheme of a DynamoDB table's URL."""

SCRUB_LEASE_SECONDS = 300.0
SEARCH_PAUSE_SECONDS = 0.1
"""A search takes in what the index lacks: so it is a tenth of a second's events, and not those of a whole one."""
SECRET_LENGTH_MIN = 8
"""Of write keys and tokens that settings give: a shorter one is a slip, or soon guessed."""
_PROCESS = secrets.token_hex(8)
"""Of this process, and of no other that ever was: process ids come again, also after a restart of the machine."""
_NAME = re.compile(r"[\w.@:-][\w.@: -]{0,99}")
_PADDED = re.compile(r"[A-Za-z0-9+/_-]{18,}={1,2}")

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
    capabilities: Sequence[Capability] = (),
) -> Threadline:
    """Open a store in this process: a path, ``"memory:"``, or None for the one that the settings name.

    A file that is not there is created. One process writes at a time; with ``readonly`` it opens beside a writer.
    ``definitions`` is a YAML file or a folder of them, by default `threadline.yaml` beside the store.
    ``capabilities`` are your own, in force beside those that ship, are installed or named by the setting. Raises
    `StoreBusy` if another process writes to it, `InvalidSetting` and `InvalidDefinition` for what cannot be read.
    """
    from threadline.surfaces.python.embedded import Threadline

    loaded = _settings(store, settings, definitions, capabilities)
    engine = open_engine(None, loaded, clock, readonly=readonly, capabilities=capabilities)
    return Threadline(engine, workspace=workspace or loaded.workspace, source=source)


def open_engine(
    store: StorePath | None = None,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    definitions: StorePath | None = None,
    *,
    readonly: bool = False,
    answers_apart: bool = False,
    capabilities: Sequence[Capability] = (),
) -> Engine:
    """The engine on a store, without a surface; see `open`.

    With ``answers_apart`` a process of its own answers questions about everybody, as a server needs it.
    """
    loaded = _settings(store, settings, definitions, capabilities)
    # A mistake in definitions or settings must not leave a store open, or create one.
    alone = None if _is_there(loaded) else _catalogue(loaded, given=capabilities)
    if alone is not None:
        _surroundings(alone, loaded, readonly=readonly)
    opened = _open_store(loaded, readonly)
    if not readonly:
        _refuse_half_moved(opened)
    store_in_use = _with_cache(opened, loaded, readonly)
    try:
        by_hand = newest(store_in_use)
        made = _catalogue(loaded, by_hand.text, capabilities) if alone is None or by_hand.number else alone
        surroundings = _surroundings(
            made, loaded, readonly=readonly, answers_apart=answers_apart, by_hand=by_hand.number
        )
        if loaded.tracing:
            surroundings = replace(surroundings, tracing=open_tracing(store_in_use, clock))
        return _engine_on(store_in_use, made, loaded, clock, surroundings, readonly=readonly)
    except BaseException:
        store_in_use.close()
        raise


def reopen(engine: Engine, settings: Settings) -> Engine:
    """An engine on the store of another, by the definitions as they are now, that takes its place.

    The other may still record what it was asked for before. Raises `InvalidDefinition` before anything has changed.
    """
    by_hand = newest(engine.store)
    made = _checked(engine, settings, by_hand.text)
    answers_apart = isinstance(engine.analytics, AnsweringProcess)
    surroundings = replace(
        _surroundings(made, settings, readonly=False, answers_apart=answers_apart, by_hand=by_hand.number),
        public_address=engine.public_address,
        search=lambda _: engine.search,
        tracing=engine.recorder.tracing,
        recorded_until=engine.recorder.recorded_until,
    )
    fresh = _engine_on(engine.store, made, settings, engine.clock, surroundings, readonly=False)
    if isinstance(engine.analytics, AnsweringProcess) and isinstance(fresh.analytics, AnsweringProcess):
        fresh.analytics.take_over(engine.analytics)
    else:
        engine.analytics.close()
    engine.people_values.close()
    engine.recorder.watchers.append(fresh.ranks.committed)
    return fresh


def _checked(engine: Engine, settings: Settings, by_hand: str) -> Catalogue:
    """What an engine would go by with the files as they are now and this made by hand; raises what `reopen` raises."""
    made = _catalogue(settings, by_hand, engine.catalogue.capabilities.given)
    refuse_changed(engine.store, made)
    # A secret that is not there must be told before anything is written.
    _senders(made, settings, engine.store, engine.clock)
    return made


def would_be(engine: Engine, settings: Settings, by_hand: str) -> str:
    """The fingerprint of the definitions in force if this were made by hand; raises what `reopen` raises."""
    return fingerprint(_checked(engine, settings, by_hand))


def _engine_on(
    store: Store, made: Catalogue, chosen: Settings, clock: Clock, surroundings: Surroundings, *, readonly: bool
) -> Engine:
    engine = Engine(store, made, clock, surroundings)
    if not readonly and _is_embedded(chosen):
        # Before anything is served: the file may be an older one that was put back, with people who were erased since.
        keep_beside(engine, engine.erasures, LedgerFile.beside(Path(chosen.store)))
    return engine


def _surroundings(
    made: Catalogue, chosen: Settings, *, readonly: bool, answers_apart: bool = False, by_hand: int = 0
) -> Surroundings:
    shared_store = readonly or "://" in chosen.store  # others write to this store
    write_keys, tokens = (
        _credentials(chosen.write_keys, "default", "write_keys"),
        _credentials(chosen.tokens, "settings", "tokens"),
    )
    _keep_apart(write_keys=write_keys, tokens=tokens)
    return Surroundings(
        web=Web(),
        confined=ConfinedProcess(),
        public_address=PublicAddress(chosen.public_url),
        exports=cache(partial(_exports, chosen.exports)) if chosen.exports else None,
        search=partial(_search_index, settings=chosen),
        analytics=partial(_analytics, settings=chosen, apart=answers_apart),
        people_values=partial(_people_values, settings=chosen),
        readers=readers(made.rules.kinds),
        forms=forms(),
        fixed_credentials=fixed_credentials(write_keys, tokens, chosen.workspace),
        credential_cache_seconds=chosen.credential_cache_seconds,
        second_factor_roles=second_factor_roles(chosen),
        people_cache_bytes=chosen.people_cache_bytes or people_cache_bytes(memory_bytes()),
        rules_refresh_seconds=chosen.rules_refresh_seconds if shared_store else None,
        leaderboard_refresh_seconds=chosen.leaderboard_refresh_seconds if shared_store else None,
        activation_changed_max=chosen.activation_changed_max if chosen.activation_what_if else None,
        by_hand=by_hand,
    )


def catalogue(files: Sequence[Path] = (), capabilities: Capabilities | None = None) -> Catalogue:
    """Everything that ships, or these capabilities, shaped by what these files of definitions declare."""
    return _declared(Definitions.load(files), capabilities)


def catalogue_of(texts: Sequence[tuple[str, str]], capabilities: Capabilities | None = None) -> Catalogue:
    """The same of texts, each with a name for messages: for processes where there are no such files."""
    return _declared(Definitions(texts), capabilities)


class _CatalogueOf(NamedTuple):
    """`catalogue_of` by the setting ``capabilities``; another process can be sent it."""

    setting: str

    def __call__(self, texts: Sequence[tuple[str, str]]) -> Catalogue:
        return catalogue_of(texts, chosen(self.setting))


def _declared(definitions: Definitions, capabilities: Capabilities | None) -> Catalogue:
    definitions.section(SETTINGS_SECTION.name)  # read before, by `load`
    identity = rules(definitions)
    return Catalogue.declared(definitions, identity, SETTINGS_SECTION, capabilities=capabilities)


def _catalogue(settings: Settings, by_hand: str = "", given: Sequence[Capability] = ()) -> Catalogue:
    definitions = Definitions.load(definition_files(definitions_file(settings)), by_hand)
    return _declared(definitions, chosen(settings.capabilities, given))


def _made_by_hand(settings: Settings) -> Made:
    """What is made by hand in the store that the settings name; nothing where no store is there yet."""
    if not _is_there(settings):
        return Made()
    with closing(_open_store(settings, readonly=True)) as store:
        return newest(store)


def _is_there(settings: Settings) -> bool:
    """Whether a store may be there already: a file is, what a URL names is asked."""
    return "://" in settings.store or (_is_embedded(settings) and Path(settings.store).exists())


@cache
def operations() -> tuple[Operation, ...]:
    """Every operation that ships, is installed, or is named in the environment, by name."""
    return catalogue(capabilities=installed(load(files=False).capabilities)).operations


def composition() -> Composition:
    """What the command line needs of this module."""
    return Composition(
        _open_for_program,
        _open_for_server,
        _open_store,
        reopen,
        _catalogue,
        open_dispatcher,
        operations,
        _back_up,
        _restore,
        _writer,
        _find_loss,
        _accept_loss,
        _files,
        open_limits,
        migrate,
        _rest,
        _lake,
        iceberg=_iceberg,
        would_be=would_be,
        made_by_hand=_made_by_hand,
    )


def _iceberg(settings: Settings) -> IcebergDoor:
    from threadline.exports.iceberg.commands import IcebergCommands

    return IcebergCommands(settings.lake, settings.iceberg_catalog, settings.iceberg_warehouse)


def _lake(settings: Settings) -> LakeDoor:
    from threadline.exports.curated.commands import LakeCommands

    made = _CatalogueOf(settings.capabilities)
    return LakeCommands(settings.lake, _columns_folder(settings), settings.workspace, made)


def open_dispatcher(engine: Engine, settings: Settings) -> Dispatcher:
    """What makes timers fire and effects leave. Raises `InvalidSetting` for a secret that is not there."""
    senders = _senders(engine.catalogue, settings, engine.store, engine.clock)
    owner = _owner(settings)
    return Dispatcher(engine, senders, owner, background=_background(engine, settings, owner))


def _owner(settings: Settings) -> str:
    # Two containers may share a host name and a process id, and neither may take the other's leases for its own.
    owner = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
    # The lock on the file proves that whoever else holds a lease is gone.
    return f"{owner}@{_PROCESS}" if _is_embedded(settings) else owner


def _search_index(engine: Engine, settings: Settings) -> SearchIndex:
    embedded = _is_embedded(settings)
    if not settings.opensearch and not settings.search_index and not embedded and settings.store != MEMORY:
        return NoIndex()
    from threadline.capabilities.ask.search.documents import document_of

    if settings.opensearch:
        from threadline.exports.search.opensearch_index import Cluster, OpenSearchIndex

        cluster = Cluster(
            settings.opensearch,
            settings.opensearch_prefix,
            engine.store,
            engine.damage,
            document_of,
            partial(erased_since, engine.store),
            engine.clock,
        )
        leases = Leases(engine.store, engine.clock, _owner(settings))
        return OpenSearchIndex(cluster, lambda handler: FeedConsumer(engine.store, engine.clock, handler, leases))
    from threadline.capabilities.ask.search.naming import named_people
    from threadline.exports.search.embedded import EmbeddedIndex

    beside = Path(f"{settings.store}-search") if embedded else None
    path = Path(settings.search_index) if settings.search_index else beside
    erased, people_of = partial(erased_since, engine.store), partial(named_people, engine)
    return EmbeddedIndex(path, engine.log, document_of, erased, people_of)


def _analytics(engine: Engine, settings: Settings, apart: bool) -> AnalyticsPort:
    folder = _columns_folder(settings)
    if not _is_embedded(settings) and not settings.lake and folder is None and settings.store != MEMORY:
        return NoAnalytics()
    here = DuckAnalytics(engine, settings.lake, folder)
    if not apart or settings.store == MEMORY:
        return here
    declared = engine.catalogue.definitions
    texts = declared.texts if isinstance(declared, Definitions) else ()
    separate = partial(_engine_apart, settings, texts, engine.catalogue.capabilities.given)
    return AnsweringProcess(separate, lambda: here.is_begun, partial(_log_end, engine.store))


def _log_end(store: Store, erased: str) -> LogEnd:
    position = store.feed_end()
    return LogEnd(int(position) if position.isdigit() else 0, erased_since(store, erased)[1])


def _people_values(engine: Engine, settings: Settings) -> PeopleValues:
    from threadline.exports.values.stored import StoredValues

    folder = settings.analytics_dir or (settings.store if _is_embedded(settings) else "")
    return StoredValues(engine, Path(f"{folder}-values") if folder else None)


def _columns_folder(settings: Settings) -> Path | None:
    """Where the copy of the log in columns is, which questions about everybody read; None: of what is not embedded,
    nothing is kept unless the settings name a folder."""
    if settings.analytics_dir:
        return Path(settings.analytics_dir)
    return Path(f"{settings.store}-analytics") if _is_embedded(settings) else None


def _engine_apart(settings: Settings, texts: Sequence[tuple[str, str]], given: Sequence[Capability]) -> Engine:
    log_lines()
    made = catalogue_of(texts, chosen(settings.capabilities, given))
    surroundings = _surroundings(made, settings, readonly=True)
    return _engine_on(_open_store(settings, readonly=True), made, settings, system_clock, surroundings, readonly=True)


def _exports(url: str) -> Storage:
    from threadline.exports.lake.storage import open_storage

    return open_storage(url)


def _background(engine: Engine, settings: Settings, owner: str) -> list[Background]:
    background: list[Background] = []
    if isinstance(engine.search, KeepsUp):
        # To look at a store that is elsewhere takes longer, and costs money.
        pause = SEARCH_PAUSE_SECONDS if _is_embedded(settings) else None
        background.append(CatchUpWorker("search", engine.search, pause, engine.recorder.readers.give))
    if isinstance(engine.analytics, KeepsUp):
        background.append(CatchUpWorker("analytics", engine.analytics))
    if isinstance(engine.people_values, KeepsUp):
        background.append(CatchUpWorker("values", engine.people_values))
    store, clock = engine.store, engine.clock
    for handler in _publishers(engine, settings):
        consumer = FeedConsumer(store, clock, handler, Leases(store, clock, owner))
        background.append(FeedWorker(consumer))
    if not settings.scrub_days:
        return background
    scrub = Scrub(store, engine.catalogue, engine.damage, clock, settings.scrub_days)
    # It is held between two pages, and given back when the process ends.
    return [*background, ScrubWorker(scrub, Leases(store, clock, owner, SCRUB_LEASE_SECONDS), clock)]


def _publishers(engine: Engine, settings: Settings) -> Iterator[FeedHandler]:
    """Those who send committed events on, as the settings name topic and queues."""
    topic = settings.events_topic
    queues = {"memory": settings.memory_queue, "features": settings.feature_queue}
    if not topic and not any(queues.values()):
        return
    from threadline.exports.publishing.publisher import CALLS_AT_ONCE, queue_publisher, topic_publisher
    from threadline.surfaces.queues.calls import sqs_calls
    from threadline.surfaces.queues.client import aws_client, name_of_queue, region_of_topic

    if topic:
        region = region_of_topic(topic)
        yield topic_publisher(engine, topic, aws_client("sns", topic, region=region, connections=CALLS_AT_ONCE))
    for projection, url in queues.items():
        if url:
            name_of_queue(url)
            yield queue_publisher(engine, url, sqs_calls(url, CALLS_AT_ONCE), projection)


def _senders(made: Catalogue, settings: Settings, store: Store, clock: Clock) -> dict[str, Sender]:
    ports = SenderPorts(settings, made.queues, clock, from_environment, store)
    return {factory.name: factory.make(ports) for factory in made.senders}


def _open_for_program(settings: Settings, readonly: bool) -> Engine:
    return open_engine(None, settings, readonly=readonly)


def _open_for_server(settings: Settings) -> Engine:
    return open_engine(None, settings, answers_apart=True)


def _rest(engine: Engine) -> None:
    # Only DynamoDB's feed waits for processes that have announced that they write.
    leave = getattr(engine.store, "leave_journal", None)
    if leave is not None:
        leave()


def _back_up(settings: Settings, file: Path, progress: OnProgress) -> Copied:
    from threadline.stores.sqlite.backup import back_up

    return back_up(_embedded(settings), file, progress, settings.busy_timeout_seconds, check=check_entry)


def _restore(settings: Settings, backup: Path, progress: OnProgress, replace: bool) -> Copied:
    from threadline.stores.sqlite.backup import restore

    return restore(backup, _embedded(settings), progress, replace=replace, check=check_entry)


def _writer(settings: Settings) -> str:
    from threadline.stores.sqlite.file import writer_of

    return writer_of(_embedded(settings))


def _find_loss(settings: Settings) -> str | None:
    from threadline.stores.sqlite.loss import find_loss

    loss = find_loss(_embedded(settings))
    return loss.text() if loss else None


def _accept_loss(settings: Settings) -> tuple[Sequence[Path], Sequence[str]]:
    from threadline.stores.sqlite.loss import accept_loss

    accepted = accept_loss(_embedded(settings))
    return (accepted.files, accepted.faults) if accepted else ((), ())


def _files(settings: Settings) -> tuple[str, Sequence[Path]]:
    from threadline.stores.sqlite.file import others_may_read
    from threadline.stores.sqlite.loss import describe_mark

    path = _embedded(settings)
    return describe_mark(path), others_may_read(path)


def _is_embedded(settings: Settings) -> bool:
    return settings.store != MEMORY and "://" not in settings.store


def _embedded(settings: Settings) -> Path:
    if not _is_embedded(settings):
        raise InvalidSetting(
            f"store: {without_secret(settings.store)} is not an embedded store",
            hint="PostgreSQL and DynamoDB have backups of their own; `threadline move` copies any store into a file.",
        )
    return Path(settings.store)


def _settings(
    store: StorePath | None,
    settings: Settings | None,
    definitions: StorePath | None,
    capabilities: Sequence[Capability],
) -> Settings:
    given = {
        "store": None if store is None else os.fspath(store),
        "definitions": None if definitions is None else os.fspath(definitions),
    }
    if settings is not None:
        return load(given, onto=settings)
    return settings_in_force(given, partial(_catalogue, given=capabilities))


def _open_store(settings: Settings, readonly: bool) -> Store:
    if settings.store == MEMORY:
        from threadline.stores.memory import MemoryStore

        return MemoryStore(readonly=readonly)
    scheme, elsewhere, _ = settings.store.partition("://")
    if scheme in POSTGRES:
        _need("psycopg", "store", "PostgreSQL", "postgres")
        from threadline.stores.postgres.store import PostgresStore

        return PostgresStore(
            settings.store,
            connections_max=settings.connections_max,
            wait_seconds=settings.busy_timeout_seconds,
            retry_seconds=settings.retry_seconds,
            readonly=readonly,
        )
    if scheme == DYNAMODB:
        _need("botocore", "store", "DynamoDB", "aws")
        from threadline.stores.dynamodb.store import DynamoStore

        return DynamoStore(settings.store, system_clock, readonly=readonly, patience_seconds=settings.retry_seconds)
    if elsewhere:
        raise InvalidSetting(f"store: {scheme}:// is not a store we know; give a path or {MEMORY!r}")
    from threadline.stores.sqlite.store import SqliteStore

    return SqliteStore(
        settings.store,
        page_cache_bytes=settings.page_cache_bytes,
        wal_pages_max=settings.wal_pages_max,
        busy_timeout_seconds=settings.busy_timeout_seconds,
        readonly=readonly,
    )


def migrate(settings: Settings) -> Sequence[str]:
    """Make what the store that the settings name is kept in, or bring it up to date; tells each step that was taken.

    A file needs none: it is made when it is first written to.
    """
    scheme, elsewhere, _ = settings.store.partition("://")
    if not elsewhere:
        return ()
    if scheme in POSTGRES:
        _need("psycopg", "store", "PostgreSQL", "postgres")
        from threadline.stores.postgres.store import migrate as migrate_postgres

        return migrate_postgres(settings.store, settings)
    if scheme == DYNAMODB:
        _need("botocore", "store", "DynamoDB", "aws")
        from threadline.stores.dynamodb.store import migrate as migrate_dynamodb

        return migrate_dynamodb(settings.store)
    raise InvalidSetting(f"store: {scheme}:// is not a store we know; give a path or {MEMORY!r}")


def _refuse_half_moved(store: Store) -> None:
    try:
        refuse_unfinished(store)
    except StoreDamaged:
        pass  # there is more to be told of that than this: by `verify`, and by whoever reads
    except BaseException:
        store.close()
        raise


def _need(module: str, setting: str, server: str, extra: str) -> None:
    """Raise `InvalidSetting` where the module is missing with which a server is spoken to that a setting names."""
    if find_spec(module) is None:
        hint = from_source(extra)
        raise InvalidSetting(f"{setting}: the driver of {server} is not installed", hint=hint)


def _with_cache(store: Store, settings: Settings, readonly: bool) -> Store:
    """The store behind the shared cache, if there is one. A reader that may not write cannot help to keep it right."""
    if not settings.cache or readonly:
        return store
    try:
        _need("redis", "cache", "Redis", "redis")
        from threadline.stores.redis.cached_store import CachedStore, redis_connections

        return CachedStore(
            store,
            redis_connections(settings.cache, settings.cache_timeout_seconds),
            cache_lifetimes(settings),
            lease_seconds=settings.cache_lease_seconds,
            retry_seconds=settings.cache_retry_seconds,
        )
    except BaseException:
        store.close()
        raise


def open_limits(settings: Settings) -> SharedLimits | None:
    """The rate limits that all processes with the same cache share; None without a cache."""
    if not settings.cache:
        return None
    _need("redis", "cache", "Redis", "redis")
    from threadline.stores.redis.limits import RedisLimits

    return RedisLimits(settings.cache, settings.cache_timeout_seconds, settings.cache_retry_seconds)


def _credentials(text: str, default: str, setting: str) -> list[tuple[str, str]]:
    """(name, secret) of ``secret`` and ``name=secret``, separated by commas. Raises `InvalidSetting`."""
    pairs = []
    for number, part in enumerate(comma_separated(text), 1):
        name, equals, secret = part.partition("=")
        if not equals or not _NAME.fullmatch(name) or _is_padded(part):
            name, secret = default, part
        # What is refused may be half of a secret, so the message says only where it stands.
        if part.startswith("=") or len(secret.strip()) < SECRET_LENGTH_MIN:
            raise InvalidSetting(
                f"{setting}: number {number} has no secret of at least {SECRET_LENGTH_MIN} characters",
                hint="Write `secret` or `name=secret`; a secret that ends in `=` is best given a name.",
            )
        pairs.append((name, secret))
    return pairs


def _keep_apart(**settings: Sequence[tuple[str, str]]) -> None:
    """Refuse a secret that two entries have: a write key is public, and as a token it would open everything."""
    owners: dict[str, tuple[str, str]] = {}
    for setting, pairs in settings.items():
        for name, secret in pairs:
            other, of = owners.setdefault(secret, (setting, name))
            if (other, of) != (setting, name):
                raise InvalidSetting(
                    f"{setting}: {name!r} has the same secret as {of!r} in {other}",
                    hint="Give each its own. Write keys are public in browsers; a token opens everything.",
                )


def _is_padded(part: str) -> bool:
    """Whether the `=` at the end belong to a secret in base64: behind a name they would stand for no secret at all.

    A name for which somebody forgot the secret must not become one, so it is long, of a length that base64 has, and
    not in lower case alone, as chance would hardly make it.
    """
    return bool(_PADDED.fullmatch(part)) and len(part) % 4 == 0 and part != part.lower()
