"""The schema: made and brought up to date by migrations, refused where code and schema do not fit, checked for harm."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.servers import postgres
from tests.stores.incompressible import noise
from threadline.kernel.errors import InvalidSetting, StoreBusy, Unavailable
from threadline.kernel.store import Batch, Key, Put, Store, feed_pages
from threadline.settings import Settings
from threadline.stores.postgres import schema as postgres_schema
from threadline.stores.postgres.connection import Connections, address_of
from threadline.stores.postgres.schema import KNOWN, MIGRATIONS, Migration
from threadline.stores.postgres.store import PostgresStore, migrate
from threadline.testing.store_cases import at_once, entry, record
from threadline.testing.store_item_laws import ItemLaws
from threadline.testing.store_log_laws import LogLaws

NEXT = Migration(
    KNOWN + 1,
    "what a later version may add",
    KNOWN,
    (
        "ALTER TABLE item ADD COLUMN expires_at bigint",
        "ALTER TABLE log ADD COLUMN workspace bytea NOT NULL DEFAULT ''",
        "ALTER TABLE commits ADD COLUMN committed_at timestamptz DEFAULT now()",
        "CREATE INDEX item_expires ON item (expires_at) WHERE expires_at IS NOT NULL",
        "CREATE TABLE later (id bigint PRIMARY KEY)",
        "CREATE FUNCTION apply_2() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    ),
)
BREAKING = Migration(KNOWN + 1, "what old code cannot live with", KNOWN + 1, ("ALTER TABLE item RENAME TO items",))


def migrate_to(url: str, *further: Migration) -> list[str]:
    """Migrate as a later version would."""
    connections = Connections(address_of(url), connections_max=1, wait_seconds=5, retry_seconds=5)
    try:
        with connections.transaction() as ask:
            return postgres_schema.migrate(ask, connections.address.schema, [*MIGRATIONS, *further])
    finally:
        connections.close()


class TestThisCodeOnALaterSchema(ItemLaws, LogLaws):
    durable = True

    def open(self, folder: Path) -> Store:
        url = postgres.server("18").url(postgres.schema_of(folder))
        migrate_to(url, NEXT)
        return PostgresStore(url)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres.server("18").url(postgres.schema_of(tmp_path))


def test_a_schema_is_made_once_whoever_tries(url: str) -> None:
    taken: list[str] = []
    at_once(*[lambda: taken.extend(migrate(url, Settings()))] * 4)
    assert taken == [f"{migration.number}: {migration.name}" for migration in MIGRATIONS]
    assert migrate(url, Settings()) == []


def test_a_running_store_goes_on_through_a_migration(url: str) -> None:
    migrate(url, Settings())
    store = PostgresStore(url)
    record(store, entry(1))
    assert migrate_to(url, NEXT) == [f"{NEXT.number}: {NEXT.name}"]
    record(store, entry(2))
    assert store.commit([Batch(writes=[Put(Key("t", "p"), b"")])]) == [None]
    assert [page.entry for page in feed_pages(store)] == [entry(1), entry(2)]
    assert store.scan("t")[0].version == 1
    store.close()


def test_a_database_without_a_schema_is_refused_with_what_to_do(url: str) -> None:
    for readonly in (False, True):
        with pytest.raises(InvalidSetting, match="no Threadline schema") as caught:
            PostgresStore(url, readonly=readonly)
        assert "threadline migrate" in caught.value.hint


def test_code_and_schema_that_do_not_fit_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate_to(url, NEXT)
    with monkeypatch.context() as later:
        later.setattr(postgres_schema.check, "__defaults__", (KNOWN + 2,))
        with pytest.raises(InvalidSetting, match=f"step {KNOWN + 1}, this code needs {KNOWN + 2}") as caught:
            PostgresStore(url)
        assert "threadline migrate" in caught.value.hint


def test_a_schema_that_does_not_serve_this_code_is_refused(url: str) -> None:
    migrate_to(url, BREAKING)
    with pytest.raises(InvalidSetting, match="this one knows") as caught:
        PostgresStore(url)
    assert caught.value.hint == "Upgrade Threadline."


def test_a_step_that_fails_leaves_nothing_behind(url: str) -> None:
    broken = Migration(KNOWN + 1, "broken", KNOWN, ("CREATE TABLE half (id int)", "SELECT 1 / 0"))
    with pytest.raises(Exception, match="division by zero"):
        migrate_to(url, broken)
    with pytest.raises(InvalidSetting, match="no Threadline schema"):
        PostgresStore(url)
    assert len(migrate(url, Settings())) == len(MIGRATIONS)


def test_who_cannot_migrate_now_is_told(url: str, tmp_path: Path) -> None:
    nobody = url.replace("host=/", "host=/nowhere/")
    with pytest.raises(Unavailable, match="cannot be reached"):
        migrate(nobody, Settings())
    hasty = Settings(busy_timeout_seconds=0.1, retry_seconds=0.3)
    with psycopg.connect(url.partition("&schema=")[0]) as other:
        name = f"threadline migrate {postgres.schema_of(tmp_path)}"
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))
        with pytest.raises(StoreBusy, match="in the way"):
            migrate(url, hasty)
        other.rollback()
        assert len(migrate(url, hasty)) == len(MIGRATIONS)


def test_steps_are_numbered_without_gaps_and_each_says_whom_it_serves() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(1, KNOWN + 1))
    assert all(1 <= migration.serves <= migration.number for migration in MIGRATIONS)


def test_workspaces_of_a_server_are_apart(tmp_path: Path) -> None:
    one, other = (postgres.store_in(postgres.server("18"), tmp_path / name) for name in ("one", "other"))
    record(one, entry(1))
    assert other.feed() == []
    record(other, entry(1))
    assert one.feed() == other.feed()
    one.close()
    other.close()


@pytest.mark.parametrize("wrong", ["postgresql://[::1/x", "postgresql://[::1]x/y", "postgresql://h/x?no_such_option=1"])
def test_a_url_that_is_none_is_told_without_its_password(wrong: str) -> None:
    with pytest.raises(InvalidSetting, match="not the URL of") as caught:
        PostgresStore(wrong.replace("://", "://me:geheim@"))
    assert "geheim" not in str(caught.value)


def test_urls_of_every_form_lead_to_a_place() -> None:
    assert address_of("postgresql:///shop?host=/run/pg&schema=a%20b").conninfo["host"] == "/run/pg"
    assert address_of("postgres://ada:geheim@db:6543/shop?schema=people&sslmode=require").schema == "people"
    assert str(address_of("postgres://ada:geheim@db:6543/shop?sslmode=require")) == "shop at db:6543, schema threadline"
    assert address_of("postgresql://one,other/shop?target_session_attrs=read-write").conninfo["host"] == "one,other"


# --- harm -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        ("DELETE FROM log WHERE commit = 3", "commit 3 has"),
        ("DELETE FROM log WHERE commit = 3 AND ordinal = 1", "commit 3 has"),
        ("DELETE FROM commits WHERE id = 3", "of no commit"),
        ("UPDATE feed_end SET position = 100", "the feed goes on at"),
        ("UPDATE commits SET start = start + 1 WHERE id = 3", "the feed goes on at"),
        ("UPDATE commits SET events = 3 WHERE id = 3", "commit 3 has"),
        ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'log_id'::regclass", "log_id is not valid"),
    ],
)
def test_harm_is_found(url: str, tmp_path: Path, harm: str, found: str) -> None:
    migrate(url, Settings())
    store = PostgresStore(url)
    for number in range(1, 10, 2):
        assert store.commit([Batch([entry(number), entry(number + 1)])]) == [None]
    assert len(store.feed()) == 10
    with psycopg.connect(url.partition("&schema=")[0], options=f"-csearch_path={postgres.schema_of(tmp_path)}") as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'threadline'")
        assert store.integrity() == [], "what a connection that broke was asked is asked again"
        db.execute(harm)
    assert any(found in problem for problem in store.integrity()), store.integrity()
    store.close()


def test_sizes_are_told(url: str) -> None:
    migrate(url, Settings())
    store = PostgresStore(url)
    for number in range(1, 50, 2):
        record(store, entry(number, body=noise(number, 1_000)), entry(number + 1))
    stats = store.stats()
    assert (stats["log_entries"], stats["unread_commits"]) == (50, 25)
    assert stats["file_bytes"] > 25_000
    assert store.feed(str(stats["log_entries"] - 1))[0].entry.sequence == 50
    assert store.stats()["unread_commits"] == 0
    store.close()


def test_commits_without_events_are_not_kept_for_ever(url: str, tmp_path: Path) -> None:
    migrate(url, Settings())
    store = PostgresStore(url)
    record(store, entry(1))
    schema = postgres.schema_of(tmp_path)
    with psycopg.connect(url.partition("&schema=")[0], options=f"-csearch_path={schema}", autocommit=True) as db:
        db.execute("INSERT INTO commits (client, serial, events) SELECT 1, n, 0 FROM generate_series(1, 2500) AS n")
        db.execute("ALTER TABLE commits ALTER COLUMN id RESTART WITH 102000")
        assert store.commit([Batch(writes=[Put(Key("t", "p"), b"")])]) == [None]
        [(left, events, oldest)] = db.execute(
            "SELECT count(*), sum(events), min(id) FILTER (WHERE events = 0) FROM commits"
        ).fetchall()
    assert (events, oldest) == (1, 2_000)
    assert left < 600
    store.close()
