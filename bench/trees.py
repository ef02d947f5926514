"""Another commit of this repository as a peer: its source in a folder, and processes that import from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import threadline

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".bench-cache"
COMMIT = "45fdf71"
"""The commit before the write path became one pass; what it did is the measure of what came after."""
SIDE = ROOT / "bench" / "peers" / f"at_{COMMIT}.py"
"""What `bench/threadline_side.py` is where that commit runs."""


class Tree(NamedTuple):
    """Where Threadline is imported from; an empty path means from where this process does."""

    name: str
    path: tuple[str, ...] = ()

    @contextmanager
    def imported(self) -> Iterator[None]:
        """Processes that are spawned inside import from this tree: they begin with the path of who starts them."""
        before = sys.path.copy()
        sys.path[:0] = self.path
        try:
            yield
        finally:
            sys.path[:] = before

    def environment(self, **settings: str) -> dict[str, str]:
        """The environment for a command that is to import from this tree, with these settings of Threadline."""
        path = [*self.path, *filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)]
        given = {f"THREADLINE_{name}": value for name, value in settings.items()}
        return {**os.environ, **given, "PYTHONPATH": os.pathsep.join(path)}

    def check(self) -> None:
        """Ends the benchmark if this process imports Threadline from another tree: it would be measured twice."""
        source = str(Path(threadline.__file__).parents[1])
        assert source == self.path[0] if self.path else CACHE not in Path(source).parents, f"{self.name}: {source}"


OURS = Tree("ours")


def peer() -> Tree | None:
    """The tree of `COMMIT`, taken from the history of this repository once; None if the history does not reach it."""
    folder = CACHE / COMMIT
    if not folder.exists():
        archive = subprocess.run(["git", "archive", COMMIT, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=False)
        if archive.returncode:
            return None  # git has said why
        CACHE.mkdir(exist_ok=True)
        # Complete or not there at all: a run that ends half-way must not leave a tree with files missing.
        making = Path(tempfile.mkdtemp(dir=CACHE))
        subprocess.run(["tar", "--extract", "--directory", making], input=archive.stdout, check=True)
        making.rename(folder)
    # `bench` is a namespace package, so this one module comes from there and all others from here.
    (folder / "bench").mkdir(exist_ok=True)
    shutil.copyfile(SIDE, folder / "bench" / "threadline_side.py")
    return Tree(COMMIT, (str(folder / "src"), str(folder)))
