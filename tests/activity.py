"""A real history: the commits of four public projects, as events in the order in which they became known."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import parse_time

FILE = Path(__file__).parent / "data" / "activity" / "activity.csv.gz"


class Commit(NamedTuple):
    """A line of the file: what one person did, and when it became known."""

    repo: str
    key: str
    authored: str
    """RFC 3339 by the author's own clock, e.g. 2014-04-24T07:47:52-05:00: it begins with the local day."""
    committed: str
    """When it became known, by the committer's clock."""
    name: str
    """A hash that stands for the author's name."""
    email: str
    """A hash that stands for the author's address; here it is who the person is."""
    bot: bool
    files: int
    topic: str
    """The first folder that it touches; empty where there is none."""

    @property
    def offset(self) -> str:
        """The author's offset from UTC, e.g. -05:00: a zone that streaks understand."""
        return self.authored[-6:]

    @property
    def known_at(self) -> int:
        """The instant at which it became known, microseconds; never before it was done."""
        return max(parse_time(self.committed), parse_time(self.authored))


def commits() -> list[Commit]:
    """Every commit, in the order in which they became known."""
    with gzip.open(FILE) as raw:
        rows = csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8"))
        found = [
            Commit(
                row["repo"],
                row["commit_key"],
                row["author_time"],
                row["commit_time"],
                row["name_key"],
                row["email_key"],
                row["is_bot"] == "1",
                int(row["files_changed"]),
                row["topic"],
            )
            for row in rows
        ]
    return sorted(found, key=lambda commit: (commit.known_at, commit.key))


def event(commit: Commit) -> Event:
    """A commit as an event of its author, in the author's own zone."""
    return Event(
        type="commit_authored",
        identifiers=(Identifier("user_id", commit.email),),
        occurred_at=parse_time(commit.authored),
        key=commit.key,
        source=commit.repo,
        properties={"topic": commit.topic, "files": commit.files, "bot": commit.bot},
        context={"timezone": commit.offset},
    )


class Clock:
    """The clock of a replay: it shows when the commits at hand became known."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def replay(engine: Engine, clock: Clock, told: Sequence[Commit], size: int = 100) -> None:
    """Record commits as they became known, ``size`` in a call. The engine must run on this clock."""
    for batch in _batches(told, size):
        clock.now = batch[-1].known_at + 1
        receipts = engine.recorder.record([event(commit) for commit in batch])
        assert {receipt.status for receipt in receipts} == {"accepted"}, receipts


def _batches(told: Sequence[Commit], size: int) -> Iterator[Sequence[Commit]]:
    for start in range(0, len(told), size):
        yield told[start : start + size]
