"""A store in a file, and other processes that work on it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked
from threadline.stores.sqlite.store import SqliteStore

FILE = "threadline.db"
SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / FILE)
    yield store
    store.close()


def python(code: str, *arguments: object, program: str = "") -> subprocess.Popen[str]:
    """Another process that runs this code with the package on its path."""
    return subprocess.Popen(
        [program or forked.python(), "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
