"""Analytics that load DuckDB and pyarrow with the first question: most processes ask none."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadline.engine.engine import Engine
from threadline.kernel.analytics import Table
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source
from threadline.kernel.search import IndexProgress

if TYPE_CHECKING:
    from threadline.exports.analytics.answering import Answering


class DuckAnalytics:
    """The analytics of an engine: see `Answering`. Thread-safe."""

    def __init__(self, engine: Engine, lake: str = "", folder: Path | None = None) -> None:
        self._engine = engine
        self._lake = lake
        """Its address; empty: none is set, and a copy of the log is made once it is long."""
        self._folder = folder
        """Of that copy; None: a temporary one."""
        self._lock = threading.Lock()
        self._made: Answering | None = None

    def query(self, workspace: str, sql: str, params: Mapping[str, Any]) -> Table:
        """See `AnalyticsPort.query`."""
        return self._answering().query(workspace, sql, params)

    @property
    def is_begun(self) -> bool:
        """Whether there is a copy to keep up: none is made before somebody asks."""
        return not self._lake and self._folder is not None and self._folder.exists()

    def catch_up(self, limit: int) -> IndexProgress:
        """Bring the copy up to date where much waits, and take out what was erased. It ignores ``limit``."""
        return IndexProgress(self._answering().catch_up(), True)

    def close(self) -> None:
        """Release files and connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()

    def _answering(self) -> Answering:
        with self._lock:
            if self._made is None:
                if any(find_spec(name) is None for name in ("duckdb", "pyarrow")):
                    raise InvalidSetting(
                        "analytics need DuckDB and pyarrow, which are not installed",
                        hint=from_source("analytics"),
                    )
                from threadline.exports.analytics.answering import Answering

                self._made = Answering(self._engine, self._lake, self._folder)
            return self._made
