"""Answers in DuckDB: over the lake, or where none is set over a copy of the log in columns that is made here.

Either is read together with what is newer in the store, so that an answer is as of the end of the log. The copy is a
lake of its own: it derives from the log, takes out what was erased, and is begun anew where it belongs to another log.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.curated.reading import Reading, opened, read
from threadline.exports.curated.writing import fold_and_keep
from threadline.exports.duck import ended_after, explained
from threadline.exports.lake import log_copy
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.log_copy import LogCopy, waits
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.kernel.analytics import Table, filled
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.limits import ANALYTICS_ROWS_MAX, ANALYTICS_SECONDS_MAX
from threadline.kernel.personal import Copy

BEHIND_EVENTS_MAX = 50_000
"""Entries behind the copy that are read for a question. With more it waits until the copy has them; where a worker
keeps the copy up, the answer is as of the last of these: beside a large import it would wait for minutes."""
OPEN_MAX = 4
"""Workspaces whose tables stay open for the next question."""
NEWER_FILES_MAX = 200
"""Files of what is newer than the copy from which on they are written anew for the next question."""


class _Open(NamedTuple):
    """The tables of a workspace, as they were for the last question."""

    reading: Reading
    tag: str
    """Of the manifest of the lake."""
    stack: ExitStack
    """Has the folder of what is newer than the lake."""

    def close(self) -> None:
        """Let them go."""
        self.reading.close()
        self.stack.close()


class Answering:
    """Thread-safe: one question at a time, which DuckDB answers with all cores. Processes may share a copy's folder."""

    def __init__(self, engine: Engine, lake: str, folder: Path | None) -> None:
        self._engine = engine
        self._url = lake
        self._lock = threading.RLock()
        self._is_kept_up = False
        """Whether a worker of this process brings the copy up to date."""
        self._open: dict[str, _Open] = {}
        self._folder = folder
        """Of the copy; None: a temporary one."""
        self._made: LogCopy | None = None
        self._stack = ExitStack()

    def query(self, workspace: str, sql: str, params: Mapping[str, Any]) -> Table:
        """See `AnalyticsPort.query`."""
        text = filled(sql, params)
        with self._lock:
            reading = self._folded(workspace, self._reading(workspace), text)
            rows: list[tuple[Any, ...]] = []
            with explained(), ended_after(reading.connection, ANALYTICS_SECONDS_MAX):
                reader = reading.run(text)
                for batch in reader:
                    rows += zip(*(column.to_pylist() for column in batch), strict=True)
                    if len(rows) > ANALYTICS_ROWS_MAX:
                        raise InvalidValue(
                            f"the answer has more than {ANALYTICS_ROWS_MAX:,} rows",
                            hint="Ask for a shorter time, longer periods or fewer values.",
                            param="start",
                        )
            return Table(list(reader.schema.names), rows, reading.tail.position, self._lacking(reading))

    def _lacking(self, reading: Reading) -> int:
        """Entries of the log that were left out, since there were too many behind the copy."""
        tail, store = reading.tail, self._engine.store
        is_cut = (
            not self._url and reading.lake is not None and tail.position >= reading.lake[1].position + BEHIND_EVENTS_MAX
        )
        if not is_cut or not store.feed(tail.cursor, 1):
            return 0
        return max(store.stats().get("log_entries", 0) - tail.position, 1)

    def catch_up(self) -> int:
        """Bring the copy up to date where much waits, and take out what was erased; the entries that it has."""
        self._is_kept_up = True
        copy = self._copy()
        copy.grow()
        return copy.lake.manifest().position

    def close(self) -> None:
        """Release files and connections; the next question opens them again."""
        with self._lock:
            for workspace in list(self._open):
                self._open.pop(workspace).close()
            self._stack.close()

    def _reading(self, workspace: str) -> Reading:
        lake = Lake(open_storage(self._url)) if self._url else self._copy_if_needed()
        tag = "" if lake is None else lake.tagged()[1]
        cached = self._open.pop(workspace, None)
        if cached is not None and (cached.tag != tag or self._is_behind(cached.reading)):
            cached = self._advanced(cached, tag)
        if cached is None:
            while len(self._open) >= OPEN_MAX:
                self._open.pop(next(iter(self._open))).close()
            stack = ExitStack()
            cached = _Open(
                stack.enter_context(opened(self._engine, lake, workspace, self._newer_max(lake))), tag, stack
            )
        self._open[workspace] = cached
        return cached.reading

    def _newer_max(self, lake: Lake | None) -> int | None:
        return None if lake is None or self._url else BEHIND_EVENTS_MAX

    def _advanced(self, cached: _Open, tag: str) -> _Open | None:
        """The same tables with what was recorded since added; None, and these closed, where they have to be opened from
        the beginning."""
        reading = cached.reading
        lake = None if reading.lake is None else reading.lake[0]
        most, known = self._newer_max(lake), 0 if reading.lake is None else reading.lake[1].position
        limit = None if most is None else known + most - reading.tail.position
        try:
            if cached.tag == tag and len(reading.tail.files) <= NEWER_FILES_MAX:
                sync(self._engine, reading.newer, limit=limit)
                fresh = read(self._engine, reading.lake, reading.newer, reading.workspace)
                reading.close()
                return cached._replace(reading=fresh)
        except Conflict:
            pass  # the log is another one now
        except BaseException:
            cached.close()
            raise
        cached.close()
        return None

    def _folded(self, workspace: str, reading: Reading, text: str) -> Reading:
        """The tables, with those in it that are folded person by person."""
        if self._url or reading.zone is None or not reading.has_to_fold(text):
            return reading
        if reading.is_locked:
            reading = self._anew(workspace)
        return self._anew(workspace) if fold_and_keep(reading) else reading

    def _anew(self, workspace: str) -> Reading:
        self._open.pop(workspace).close()
        return self._reading(workspace)

    def _is_behind(self, reading: Reading) -> bool:
        """Whether something was recorded or erased since the tables were opened."""
        store, tail = self._engine.store, reading.tail
        return bool(store.feed(tail.cursor, 1)) or erased_since(store, tail.erased)[1] != tail.erased

    def _copy_if_needed(self) -> Lake | None:
        """The copy; None while the whole log is read quickly."""
        if self._made is None and self._folder is None and not waits(self._engine.store, 0, "", log_copy.TAIL_EVENTS):
            return None
        copy = self._copy()
        if not copy.is_needed:
            return None
        is_there = copy.is_current(BEHIND_EVENTS_MAX) or (self._is_kept_up and copy.is_ours())
        if not copy.is_begun or not is_there:
            copy.grow()
        return copy.lake

    def _copy(self) -> LogCopy:
        if self._made is None:
            folder = self._folder
            if folder is None:
                folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="threadline-analytics-")))
                self._stack.callback(self._forget)
            self._made = LogCopy(self._engine, folder)
        return self._made

    def _forget(self) -> None:
        self._made = None


COPY = Copy("columns of analytics", Answering.catch_up)
