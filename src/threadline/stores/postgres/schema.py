"""The tables and functions in PostgreSQL: made step by step by migrations, each of which leaves older code working."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from threadline.kernel.errors import InvalidSetting
from threadline.stores.postgres.rows import Ask

MIGRATE_HINT = "Run `threadline migrate` on this database, with a role that may create tables."


class Migration(NamedTuple):
    """One step of the schema. A step that was released is never changed; what must change is another step."""

    number: int
    name: str
    serves: int
    """The oldest code that works on the schema after this step, by the number of the last step that it knows."""
    statements: tuple[str, ...]


# Keys and event types are bytes: the order of bytea is that of UTF-8, whatever the collation of the database, and text
# in PostgreSQL could not hold a NUL. Tables of the port are numbers, because a key of three parts of a kilobyte each
# would not fit in an index entry.
#
# A commit is a row of `commits`. The pair (client, serial) is its token: who lost the connection over a commit learns
# from it what became of it; -1 events are those of a commit that was given up. `start` is the place of its first event
# in the feed; see `feed_page_1`.
_TABLES = (
    "CREATE TABLE item_table (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bytea NOT NULL UNIQUE)",
    """CREATE TABLE item (
        tbl int NOT NULL, partition bytea NOT NULL, sort bytea NOT NULL, version bigint NOT NULL, value bytea NOT NULL,
        PRIMARY KEY (tbl, partition, sort)
    ) WITH (fillfactor = 75)""",
    """CREATE TABLE commits (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, client bigint NOT NULL, serial bigint NOT NULL,
        events int NOT NULL, start bigint, UNIQUE (client, serial)
    )""",
    "CREATE UNIQUE INDEX commits_start ON commits (start) WHERE start IS NOT NULL",
    "CREATE INDEX commits_fresh ON commits (id) WHERE start IS NULL AND events > 0",
    "CREATE INDEX commits_empty ON commits (id) WHERE events <= 0",
    """CREATE TABLE log (
        commit bigint NOT NULL, ordinal int NOT NULL, thread bytea NOT NULL, sequence bigint NOT NULL,
        occurred_at bigint NOT NULL, type bytea NOT NULL, id bytea NOT NULL, digest bigint NOT NULL,
        body bytea NOT NULL, PRIMARY KEY (commit, ordinal)
    )""",
    "CREATE UNIQUE INDEX log_id ON log (id)",
    "CREATE INDEX log_place ON log (thread, occurred_at, sequence)",
    "CREATE TABLE feed_end (position bigint NOT NULL)",
    "INSERT INTO feed_end VALUES (0)",
)

# One call is one transaction, and nearly every commit is one call: nobody's locks wait for a client. Its items come in
# three lists: old ones (``o_``) must have the version that is expected, new ones (``n_``) must be absent, free ones
# (``f_``) may be either. What is waited for is always taken in the same order, which keeps commits from blocking each
# other in a circle: old items by key, new ones by key, free ones by key, events by id. The caller sorts the lists, and
# the loops over them keep that order. Should two commits meet crosswise all the same, because an item is old to one and
# free to the other, the server ends one of them after a second and it is tried again.
#
# An absent item that must stay absent is put there for the length of the transaction: only so does another one that
# wants to create it wait for this one's end.
_APPLY = """CREATE FUNCTION apply_1(
    p_client bigint, p_serial bigint,
    o_table int[], o_partition bytea[], o_sort bytea[], o_expected bigint[], o_version bigint[], o_value bytea[],
    n_table int[], n_partition bytea[], n_sort bytea[], n_version bigint[], n_value bytea[],
    f_table int[], f_partition bytea[], f_sort bytea[], f_version bigint[], f_value bytea[],
    e_ordinal int[], e_thread bytea[], e_sequence bigint[], e_occurred_at bigint[], e_type bytea[], e_id bytea[],
    e_digest bigint[], e_body bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    as_expected bigint;
    new_id bigint;
BEGIN
    IF cardinality(o_table) > 0 THEN
        SELECT count(locked.expected) INTO as_expected FROM (
            SELECT o.expected
            FROM unnest(o_table, o_partition, o_sort, o_expected) AS o (tbl, partition, sort, expected)
            JOIN item USING (tbl, partition, sort) WHERE item.version = coalesce(o.expected, item.version)
            ORDER BY tbl, partition, sort FOR UPDATE OF item
        ) AS locked;
        IF as_expected <> (SELECT count(o.expected) FROM unnest(o_expected) AS o (expected)) THEN
            RETURN false;
        END IF;
    END IF;
    IF cardinality(n_table) > 0 THEN
        IF EXISTS (
            SELECT FROM unnest(n_table, n_partition, n_sort) AS n (tbl, partition, sort)
            JOIN item USING (tbl, partition, sort)
        ) THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO commits (client, serial, events) VALUES (p_client, p_serial, cardinality(e_id))
        RETURNING id INTO new_id;
    IF cardinality(n_table) > 0 THEN
        INSERT INTO item (tbl, partition, sort, version, value)
            SELECT * FROM unnest(n_table, n_partition, n_sort, n_version, n_value);
    END IF;
    IF cardinality(f_table) > 0 THEN
        INSERT INTO item (tbl, partition, sort, version, value)
            SELECT * FROM unnest(f_table, f_partition, f_sort, f_version, f_value)
            ON CONFLICT (tbl, partition, sort)
            DO UPDATE SET version = item.version + excluded.version, value = excluded.value;
    END IF;
    IF cardinality(o_table) > 0 THEN
        UPDATE item SET version = o.version, value = o.value
            FROM unnest(o_table, o_partition, o_sort, o_version, o_value) AS o (tbl, partition, sort, version, value)
            WHERE o.version > 0
            AND item.tbl = o.tbl AND item.partition = o.partition AND item.sort = o.sort;
    END IF;
    IF 0 = ANY (o_version) THEN
        DELETE FROM item USING unnest(o_table, o_partition, o_sort, o_version) AS o (tbl, partition, sort, version)
            WHERE o.version = 0
            AND item.tbl = o.tbl AND item.partition = o.partition AND item.sort = o.sort;
    END IF;
    IF 0 = ANY (n_version) THEN
        DELETE FROM item USING unnest(n_table, n_partition, n_sort, n_version) AS n (tbl, partition, sort, version)
            WHERE n.version = 0
            AND item.tbl = n.tbl AND item.partition = n.partition AND item.sort = n.sort;
    END IF;
    IF cardinality(e_id) > 0 THEN
        INSERT INTO log (commit, ordinal, thread, sequence, occurred_at, type, id, digest, body)
            SELECT new_id, * FROM unnest(
                e_ordinal, e_thread, e_sequence, e_occurred_at, e_type, e_id, e_digest, e_body
            );
    END IF;
    -- Commits without events are kept only as long as somebody may ask what became of them.
    IF new_id % 1000 = 0 THEN
        DELETE FROM commits WHERE events <= 0 AND id < new_id - 100000;
    END IF;
    RETURN true;
END $$"""

# Rows with a table are items that are there; they stay as they are until the transaction ends. Rows without one are ids
# that are taken.
_LOOK = """CREATE FUNCTION look_1(k_table int[], k_partition bytea[], k_sort bytea[], k_ids bytea[])
RETURNS TABLE (tbl int, partition bytea, sort bytea, version bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT item.tbl, item.partition, item.sort, item.version
        FROM unnest(k_table, k_partition, k_sort) AS k (tbl, partition, sort)
        JOIN item ON item.tbl = k.tbl AND item.partition = k.partition AND item.sort = k.sort
        ORDER BY item.tbl, item.partition, item.sort FOR UPDATE OF item;
    RETURN QUERY SELECT NULL::int, log.id, NULL::bytea, NULL::bigint FROM log WHERE log.id = ANY (k_ids);
END $$"""

# Commits get their place in the feed when it is read, in turns: whoever reads numbers all commits that are to be seen
# by then. One that becomes visible later, however long its transaction was open, is numbered later, after everything
# that anybody has read; and no commit ever waits for another's end, only readers take turns.
_FEED = """CREATE FUNCTION feed_page_1(p_after bigint, p_limit bigint) RETURNS TABLE (
    "position" bigint, thread bytea, sequence bigint, occurred_at bigint, type bytea, id bytea, digest bigint,
    body bytea
) LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    first_start bigint;
BEGIN
    IF current_setting('transaction_read_only') = 'off'
        AND EXISTS (SELECT FROM commits AS c WHERE c.start IS NULL AND c.events > 0)
    THEN
        SELECT f.position INTO last FROM feed_end AS f FOR UPDATE;
        WITH fresh AS (
            SELECT c.id, c.events FROM commits AS c WHERE c.start IS NULL AND c.events > 0 ORDER BY c.id LIMIT 10000
        ), placed AS (
            SELECT fresh.id, last + sum(fresh.events) OVER (ORDER BY fresh.id) - fresh.events AS start FROM fresh
        ), numbered AS (
            UPDATE commits AS c SET start = placed.start FROM placed WHERE c.id = placed.id RETURNING c.events
        )
        UPDATE feed_end SET position = last + (SELECT coalesce(sum(numbered.events), 0) FROM numbered);
    END IF;
    SELECT max(c.start) INTO first_start FROM commits AS c WHERE c.start <= p_after;
    RETURN QUERY
        SELECT c.start + l.ordinal, l.thread, l.sequence, l.occurred_at, l.type, l.id, l.digest, l.body
        FROM commits AS c JOIN log AS l ON l.commit = c.id
        WHERE c.start >= coalesce(first_start, 0) AND c.start + l.ordinal > p_after
        ORDER BY c.start, l.ordinal LIMIT p_limit;
END $$"""

# What is known of a person is some KB and is written with every event of theirs. Compressing that by PostgreSQL's own
# method was nearly half of what a write costs the server; not every server is built with the faster one.
_VALUES = """DO $$ BEGIN
    ALTER TABLE item ALTER COLUMN value SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    ALTER TABLE item ALTER COLUMN value SET STORAGE EXTERNAL;
END $$"""

# A compressor of the server's own gains nothing with what is compressed already.
_COMPRESSED = (
    "ALTER TABLE item ALTER COLUMN value SET STORAGE EXTERNAL",
    "ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL",
)

MIGRATIONS = (
    Migration(1, "tables of items and events", 1, (*_TABLES, _APPLY, _LOOK, _FEED)),
    Migration(2, "values compressed by lz4, or not at all", 1, (_VALUES,)),
    Migration(3, "values and events compressed by Threadline", 3, _COMPRESSED),
)

KNOWN = MIGRATIONS[-1].number
"""The last step that this code knows, and the first on which it works."""


def migrate(ask: Ask, schema: str, migrations: Sequence[Migration] = MIGRATIONS) -> list[str]:
    """Bring the schema up to date within the transaction that is open; the names of the steps that were taken.

    Several processes may try at once: the first does it, the others find it done.
    """
    ask("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"threadline migrate {schema}",))
    [(there,)] = ask("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (schema,))
    if not there:
        ask('CREATE SCHEMA "' + schema.replace('"', '""') + '"', ())
    ask(
        """CREATE TABLE IF NOT EXISTS migration (
            number int PRIMARY KEY, name text NOT NULL, serves int NOT NULL, applied_at timestamptz DEFAULT now()
        )""",
        (),
    )
    [(last,)] = ask("SELECT coalesce(max(number), 0) FROM migration", ())
    pending = [migration for migration in migrations if migration.number > last]
    for migration in pending:
        for statement in migration.statements:
            ask(statement, ())
        ask("INSERT INTO migration (number, name, serves) VALUES (%s, %s, %s)", migration[:3])
    return [f"{migration.number}: {migration.name}" for migration in pending]


def check(ask: Ask, schema: str, known: int = KNOWN) -> None:
    """Raise `InvalidSetting` unless this code works on the schema that is there."""
    [(there,)] = ask("SELECT to_regclass('migration') IS NOT NULL", ())
    if not there:
        raise InvalidSetting(f"this database has no Threadline schema {schema!r} yet", hint=MIGRATE_HINT)
    [(last, serves)] = ask("SELECT number, serves FROM migration ORDER BY number DESC LIMIT 1", ())
    if last < known:
        raise InvalidSetting(f"the schema {schema!r} is at step {last}, this code needs {known}", hint=MIGRATE_HINT)
    if serves > known:
        raise InvalidSetting(
            f"the schema {schema!r} is at step {last} and serves code that knows step {serves}; this one knows {known}",
            hint="Upgrade Threadline.",
        )
