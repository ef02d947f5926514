"""The shared store: one PostgreSQL database, any number of processes that read and write, every commit synced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from threadline.kernel.errors import InvalidValue, StoreDamaged, Unavailable
from threadline.kernel.ids import packed_ids
from threadline.kernel.store import (
    ERASED_THREAD,
    Batch,
    FeedEntry,
    Item,
    Key,
    LogEntry,
    Range,
    Refusal,
    Span,
    by_thread,
    check_batches,
    check_erase,
    check_page,
    check_shard,
    only,
)
from threadline.settings import Settings
from threadline.stores import compression
from threadline.stores.postgres import schema as postgres_schema
from threadline.stores.postgres.commit import Commits
from threadline.stores.postgres.connection import Connections, address_of
from threadline.stores.postgres.rows import Ask, Tables, columns, log_entries, utf8

_GET = """SELECT tbl, partition, sort, version, value
    FROM unnest(%b::int[], %b::bytea[], %b::bytea[]) AS k (tbl, partition, sort)
    JOIN item USING (tbl, partition, sort)"""
_RANGES = """SELECT place, i.partition, i.sort, i.version, i.value
    FROM unnest(%b::int[], %b::int[], %b::bytea[], %b::bytea[], %b::bytea[], %b::int[])
        AS r (place, tbl, partition, start, stop, most),
    LATERAL (SELECT partition, sort, version, value FROM item
        WHERE tbl = r.tbl AND partition = r.partition AND sort >= r.start AND (r.stop IS NULL OR sort < r.stop)
        ORDER BY sort LIMIT r.most) AS i
    ORDER BY place, i.sort"""
_TABLES = "SELECT name FROM item_table WHERE EXISTS (SELECT FROM item WHERE tbl = item_table.id) ORDER BY name"
_ERASED = f"'\\x{ERASED_THREAD}'::bytea"
_ERASE = f"""UPDATE log SET thread = {_ERASED}, sequence = 0, occurred_at = 0, type = '', digest = 0, body = ''
    WHERE id = ANY(%b::bytea[]) AND thread <> {_ERASED} RETURNING id"""  # noqa: S608 - texts of our own
_ENTRY = "thread, sequence, occurred_at, type, id, digest, body"
_HISTORIES = f"""SELECT {_ENTRY} FROM log WHERE thread = ANY(%b::bytea[])
    ORDER BY thread, occurred_at, sequence"""  # noqa: S608 - a text of our own
_FIND = f"SELECT {_ENTRY} FROM log WHERE id = ANY(%b::bytea[]) AND thread <> {_ERASED}"  # noqa: S608 - as above
_SEEN = "SELECT id, digest FROM log WHERE id = ANY(%b::bytea[])"
_FEED = f'SELECT {_ENTRY}, "position" FROM feed_page_1(%s, %s)'  # noqa: S608 - as above
# A hash of where the item lies, which updates keep; it is the same on every server.
_OF_SHARD = "('x' || encode(substr(sha256(partition || sort), 1, 3), 'hex'))::bit(24)::int"
_MEND = """UPDATE log SET thread = %b, sequence = %s, occurred_at = %s, type = %b, id = %b, digest = %s, body = %b
    FROM (SELECT id AS number, start FROM commits WHERE start < %s ORDER BY start DESC LIMIT 1) AS placed
    WHERE log.commit = placed.number AND log.ordinal = %s - placed.start AND (
        (thread, sequence, occurred_at, type, id, digest, body) IS NOT DISTINCT FROM (%b, %s, %s, %b, %b, %s, %b)
    ) RETURNING true"""
_STATS = """SELECT pg_total_relation_size('log') + pg_total_relation_size('item') + pg_total_relation_size('commits'),
    (SELECT position FROM feed_end)
        + (SELECT coalesce(sum(events), 0)::bigint FROM commits WHERE start IS NULL AND events > 0),
    (SELECT count(*) FROM commits WHERE start IS NULL AND events > 0),
    current_setting('data_checksums') = 'on'"""
_PROBLEMS = """SELECT format('the index %s is not valid', indexrelid::regclass) FROM pg_index
        WHERE indrelid IN ('log'::regclass, 'item'::regclass, 'commits'::regclass) AND NOT indisvalid
    UNION ALL SELECT format('the server runs with %s=off: a power cut may lose what was acknowledged', name)
        FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'
    UNION ALL SELECT format('commit %s has %s events in the log and should have %s', c.id, found.events, c.events)
        FROM commits AS c LEFT JOIN (
            SELECT commit, count(*) AS events, max(ordinal) AS last FROM log GROUP BY commit
        ) AS found ON found.commit = c.id
        WHERE c.events > 0 AND (c.events IS DISTINCT FROM found.events OR c.events <> found.last)
    UNION ALL SELECT format('%s events of the log are of no commit', count(*)) FROM log
        WHERE NOT EXISTS (SELECT FROM commits WHERE id = log.commit) HAVING count(*) > 0
    UNION ALL SELECT format('the feed goes on at %s after commit %s and should at %s', next, id, start + events) FROM (
            SELECT id, start, events, coalesce(
                lead(start) OVER (ORDER BY start), (SELECT position FROM feed_end)
            ) AS next FROM commits WHERE start IS NOT NULL
        ) AS placed WHERE next <> start + events
    LIMIT 100"""
# Of each index: its table, its columns, which rows it has.
_INDEXES = (
    ("item", "tbl, partition, sort", "true"),
    ("log", "commit, ordinal", "true"),
    ("log", "id", "true"),
    ("log", "thread, occurred_at, sequence", "true"),
    ("commits", "id", "true"),
    ("commits", "client, serial", "true"),
    ("commits", "start", "start IS NOT NULL"),
)
_CONTENT = """SELECT count(*), sum(hashtext(({names})::text))
    FROM (SELECT {names} FROM {table} WHERE {which} ORDER BY {names}) AS found"""
_PLANS = """SELECT set_config(name, CASE WHEN name LIKE 'enable_index%%' THEN %s ELSE %s END, true)
    FROM unnest(ARRAY['enable_indexscan', 'enable_indexonlyscan', 'enable_seqscan', 'enable_sort']) AS name"""
_POSITION_END = 2**63


class PostgresStore:
    """A store in the schema that ``url`` names, made by `migrate`. Safe for use from many threads and processes.

    With ``readonly`` it cannot write events or items; on a stand-by it can be opened no other way.
    ``wait_seconds`` is how long a commit waits for others, ``retry_seconds`` how long everything waits for a server
    that cannot be reached before it raises `Unavailable`.
    """

    def __init__(
        self,
        url: str,
        *,
        connections_max: int = 8,
        wait_seconds: float = 5.0,
        retry_seconds: float = 10.0,
        readonly: bool = False,
    ) -> None:
        self._connections = Connections(
            address_of(url), connections_max=connections_max, wait_seconds=wait_seconds, retry_seconds=retry_seconds
        )
        self._ask = self._connections.ask
        self._tables = Tables()
        self._commits = None if readonly else Commits(self._connections, self._tables)
        schema = self._connections.address.schema
        try:
            self._connections.open(lambda ask: postgres_schema.check(ask, schema))
        except BaseException:
            self._connections.close()
            raise

    # --- reading ------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store.get`."""
        packed = [(key.table, utf8(key.partition), utf8(key.sort)) for key in keys]
        numbers = self._tables.numbers(self._ask, {key.table for key in keys})
        wanted = [(numbers[table], partition, sort) for table, partition, sort in packed if table in numbers]
        if not wanted:
            return [None] * len(keys)
        tables = {number: table for table, number in numbers.items()}
        rows = self._ask(_GET, columns(wanted, 3))
        keyed = ((Key(tables[row[0]], row[1].decode(), row[2].decode()), *row[3:]) for row in rows)
        by_key = {item.key: item for item in compression.items(keyed)}
        return [by_key.get(key) for key in keys]

    def query(
        self,
        table: str,
        partition: str,
        start: str = "",
        stop: str | None = None,
        limit: int = 1_000,
        reverse: bool = False,
    ) -> list[Item]:
        """See `Store.query`."""
        check_page(limit)
        where = "partition = %b AND sort >= %b" + ("" if stop is None else " AND sort < %b")
        values = [utf8(text) for text in (partition, start, *(() if stop is None else (stop,)))]
        return self._items(table, where, "sort DESC" if reverse else "sort", values, limit)

    def ranges(self, ranges: Sequence[Range]) -> list[list[Item]]:
        """See `Store.ranges`."""
        for key_range in ranges:
            check_page(key_range.limit)
        numbers = self._tables.numbers(self._ask, {key_range.table for key_range in ranges})
        rows = [
            (number, numbers.get(table), utf8(partition), utf8(start), None if stop is None else utf8(stop), limit)
            for number, (table, partition, start, stop, limit) in enumerate(ranges)
        ]
        results: list[list[Item]] = [[] for _ in ranges]
        rows = [row for row in rows if row[1] is not None]
        read = self._ask(_RANGES, columns(rows, 6)) if rows else []
        keyed = ((Key(ranges[row[0]].table, row[1].decode(), row[2].decode()), *row[3:]) for row in read)
        for row, item in zip(read, compression.items(keyed), strict=True):
            results[row[0]].append(item)
        return results

    def scan(
        self, table: str, shard: int = 0, shards: int = 1, after: Key | None = None, limit: int = 1_000
    ) -> list[Item]:
        """See `Store.scan`; ordered by (partition, sort), sharded by a hash of both."""
        check_page(limit)
        check_shard(shard, shards)
        where, values = "true", list[bytes | int]()
        if after is not None:
            where, values = "(partition, sort) > (%b, %b)", [utf8(after.partition), utf8(after.sort)]
        if shards > 1:
            where, values = f"{where} AND {_OF_SHARD} %% %s = %s", [*values, shards, shard]
        return self._items(table, where, "partition, sort", values, limit)

    def _items(self, table: str, where: str, order: str, values: Sequence[bytes | int], limit: int) -> list[Item]:
        number = self._tables.numbers(self._ask, (table,)).get(table)
        if number is None:
            return []
        # Only the fixed texts of the two callers are put together here; values are bound.
        sql = f"SELECT partition, sort, version, value FROM item WHERE tbl = %s AND {where} ORDER BY {order} LIMIT %s"  # noqa: S608
        rows = self._ask(sql, (number, *values, limit))
        return compression.items((Key(table, row[0].decode(), row[1].decode()), *row[2:]) for row in rows)

    def tables(self) -> list[str]:
        """See `Store.tables`."""
        return [name.decode() for (name,) in self._ask(_TABLES)]

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """See `Store.find`."""
        return {entry.id: entry for entry in log_entries(self._ask(_FIND, (packed_ids(ids),)))}

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """See `Store.seen`."""
        return {id.hex(): digest for id, digest in self._ask(_SEEN, (packed_ids(ids),))}

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """See `Store.spans`."""
        check_page(span.limit)
        sql, values = _span_query(_threads(threads), span)
        return by_thread(log_entries(self._ask(sql, values)))

    def histories(
        self, threads: Sequence[str], wanted: Callable[[str], bool] | None = None
    ) -> dict[str, list[LogEntry]]:
        """See `Store.histories`."""
        return only(by_thread(log_entries(self._ask(_HISTORIES, (_threads(threads),)))), wanted)

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """See `Store.feed`; the cursor is how many entries have been read. A stand-by gives what has its place."""
        check_page(limit)
        if cursor and not (cursor.isascii() and cursor.isdigit() and int(cursor) < _POSITION_END):
            raise InvalidValue(f"{cursor!r:.80} is not a cursor of this feed", param="cursor")
        rows = self._ask(_FEED, (int(cursor or 0), limit))
        return [FeedEntry(str(row[7]), entry) for row, entry in zip(rows, log_entries(rows), strict=True)]

    def feed_end(self) -> str:
        """See `Store.feed_end`. Reading numbers the commits that have no place yet."""
        self.feed(str(_POSITION_END - 1), 1)
        return str(self._ask("SELECT position FROM feed_end", ())[0][0])

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`: what is committed is there."""
        return False

    # --- writing ------------------------------------------------------------------------------

    def advisory_lock(self, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """See `Store.advisory_lock`."""
        return self._connections.advisory_lock("/".join(key) for key in keys)

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """See `Store.commit`. All batches of a call share one transaction and one sync."""
        check_batches(batches)
        if self._commits is None:
            raise Unavailable("the store is open for reading only")
        return self._commits.commit(batches)

    def erase(self, ids: Sequence[str]) -> int:
        """See `Store.erase`; one statement."""
        check_erase(ids)
        if self._commits is None:
            raise Unavailable("the store is open for reading only")
        return len(self._ask(_ERASE, (packed_ids(ids),)))

    def purge(self) -> None:
        """See `Store.purge`; it lets the server use the space of dead rows again, which is for the tables' owner."""
        if self._commits is None:
            raise Unavailable("the store is open for reading only")
        for table in ("log", "item"):
            self._ask(f"VACUUM {table}")

    def mend(self, damaged: FeedEntry, good: LogEntry) -> bool:
        """See `Store.mend`."""
        if self._commits is None:
            raise Unavailable("the store is open for reading only")
        position = int(damaged.cursor)
        rows = self._ask(_FEED, (position - 1, 1))
        if log_entries(rows) != [damaged.entry]:
            return False
        return bool(self._ask(_MEND, (*_columns(good), position, position, *rows[0][:7])))

    # --- the rest -----------------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """See `Store.stats`: the tables in bytes, the log in entries, the commits nobody has read from the feed,
        and whether the server keeps checksums of its pages."""
        [(size, entries, fresh, checksums)] = self._ask(_STATS)
        return {
            "file_bytes": size,
            "log_entries": entries,
            "unread_commits": fresh,
            "data_checksums": int(checksums),
        }

    def integrity(self) -> list[str]:
        """See `Store.integrity`: what is wrong with the tables. Reads all of the log and of the commits."""
        try:
            return self._connections.together(_problems)
        except StoreDamaged as error:
            return [str(error)]

    def close(self) -> None:
        """See `Store.close`."""
        self._connections.close()


def _columns(entry: LogEntry) -> tuple[bytes | int, ...]:
    thread, sequence, occurred_at, type, id, digest, whole = entry
    [body] = compression.bodies.compressed([whole])
    return bytes.fromhex(thread), sequence, occurred_at, utf8(type), bytes.fromhex(id), digest, body


_WHOLE = ["enable_seqscan", "enable_hashjoin", "enable_mergejoin"]


def _problems(ask: Ask) -> list[str]:
    # All that is compared here is of one instant.
    ask("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", ())
    # These joins are of whole tables, for which the plans of everyday questions are the wrong ones.
    ask("SELECT set_config(name, 'on', true) FROM unnest(%s::text[]) AS name", (_WHOLE,))
    problems = [str(problem) for (problem,) in ask(_PROBLEMS, ())]
    # Every page of values is read, so that the server compares it with its checksum; and each index from one end to
    # the other.
    ask("SELECT count(sha256(value)) FROM item", ())
    for table, names, which in _INDEXES:
        contents = []
        for by_index, by_table in (("on", "off"), ("off", "on")):
            ask(_PLANS, (by_index, by_table))
            contents += ask(_CONTENT.format(table=table, names=names, which=which), ())
        if contents[0] != contents[1]:
            problems.append(f"the index of {table} by {names} does not have what its table has")
    return problems


def _threads(threads: Sequence[str]) -> list[bytes]:
    """Those that hold events: erased ones are in none."""
    return packed_ids(thread for thread in dict.fromkeys(threads) if thread != ERASED_THREAD)


def _span_query(threads: list[bytes], span: Span) -> tuple[str, list[object]]:
    wheres = ["thread = wanted.id"]
    values: list[object] = [threads]
    if span.start is not None:
        wheres.append("occurred_at >= %s")
        values.append(span.start)
    if span.stop is not None:
        wheres.append("occurred_at < %s")
        values.append(span.stop)
    if span.after is not None:
        wheres.append(f"(occurred_at, sequence) {'<' if span.reverse else '>'} (%s, %s)")
        values.extend(span.after)
    if span.types:
        wheres.append("type = ANY(%b::bytea[])")
        values.append([utf8(type) for type in span.types])
    order = "DESC" if span.reverse else "ASC"
    # Only the fixed texts above are put together here; values are bound.
    sql = f"""SELECT found.* FROM unnest(%b::bytea[]) AS wanted (id) CROSS JOIN LATERAL (
        SELECT {_ENTRY} FROM log WHERE {" AND ".join(wheres)}
        ORDER BY occurred_at {order}, sequence {order} LIMIT %s) AS found
        ORDER BY found.thread, found.occurred_at {order}, found.sequence {order}"""  # noqa: S608
    return sql, [*values, span.limit]


def migrate(url: str, settings: Settings) -> Sequence[str]:
    """Make the schema that a URL names, or bring it up to date; the steps that were taken, none if it was."""
    connections = Connections(
        address_of(url),
        connections_max=2,  # the second only where a pooler answers
        wait_seconds=settings.busy_timeout_seconds,
        retry_seconds=settings.retry_seconds,
    )
    try:
        connections.open(lambda ask: ask("SELECT 1", ()))
        return connections.together(lambda ask: postgres_schema.migrate(ask, connections.address.schema))
    finally:
        connections.close()
