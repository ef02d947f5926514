"""Rows of leaderboards: where a person's score lies so that the best come first and no partition takes every write."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from threadline.kernel.projection import Row
from threadline.kernel.time import WEEK, time_key, time_of_key

TABLE = "board"
SHARDS = 16
"""Partitions of one board, by person. Reading the first of all of them costs as many ranges as there are."""
EPOCH = 4 * WEEK
"""Scores that end by themselves lie in a partition for the weeks in which they end: once these are over, nobody reads
them any more, so the departed need no sweeping."""
EPOCHS_AHEAD = 3
LIFE_MAX = EPOCHS_AHEAD * EPOCH
"""How far ahead an end is looked for. A score that would end later leaves after so long without news."""
SCORE_MAX = (1 << 63) - 1

_NEVER = "-"


class Board(NamedTuple):
    """Whom is compared with whom."""

    workspace: str
    name: str
    """Of the board and of the definition it was made by: scores of another definition are another board's."""
    period: str
    """``all``, or the day, week or month as text."""
    scope: str
    """Empty for everyone, else e.g. ``country=IT`` or ``tag=vip``."""


class Place(NamedTuple):
    """A person on a board. Places sort by it as rows do: the highest score first, equal ones by person."""

    score: int
    person: str
    expires_at: int | None
    """The score counts before this instant; None for one that stays."""

    def counts_at(self, now: int) -> bool:
        """Whether the score is still one at an instant."""
        return self.expires_at is None or now < self.expires_at

    @property
    def sort(self) -> str:
        """The sort of its row."""
        end = _NEVER if self.expires_at is None else time_key(self.expires_at)
        return f"{SCORE_MAX - self.score:016x}.{self.person}.{end}"


class Counted(NamedTuple):
    """How a score stands among all on its board."""

    above: int
    """How many have a higher score."""
    total: int
    as_of: int
    """Every commit before this instant is counted, and every one of this process."""


def place_of(sort: str) -> Place:
    """The place whose row has this sort."""
    score, person, end = sort.split(".")
    return Place(SCORE_MAX - int(score, 16), person, None if end == _NEVER else time_of_key(end))


def alike(sort: str) -> tuple[str, str]:
    """What two sorts have in common whose places differ by nothing but the person: counting goes by it, unread."""
    return sort[:16], sort.rpartition(".")[2]


def place_like(score: str, end: str) -> Place:
    """A place with what `alike` gave, of nobody."""
    return place_of(f"{score}..{end}")


def row_of(board: Board, place: Place) -> Row:
    """The row of a place. All that is to be known stands in its key: a change is always another row."""
    epoch = _NEVER if place.expires_at is None else str(place.expires_at // EPOCH)
    return Row(TABLE, _partition(board, epoch, shard_of(place.person)), place.sort)


def shard_of(person: str) -> int:
    """The shard of a person; ids are hashes, so any two digits of them spread evenly."""
    return int(person[:2], 16) % SHARDS


def partitions(board: Board, now: int, *, expiring: bool) -> list[str]:
    """Every partition in which a score of this board may lie that counts at an instant."""
    first = now // EPOCH
    epochs = [str(first + ahead) for ahead in range(EPOCHS_AHEAD + 1)] if expiring else [_NEVER]
    return [_partition(board, epoch, shard) for epoch in epochs for shard in range(SHARDS)]


def _partition(board: Board, epoch: str, shard: int) -> str:
    # The scope comes last: it is the only part that may hold the sign between the parts.
    return f"{board.workspace}/{board.name}/{board.period}/{epoch}/{shard:02d}/{board.scope}"


def board_of(partition: str) -> Board:
    """The board of a partition."""
    workspace, name, period, _, _, scope = partition.split("/", 5)
    return Board(workspace, name, period, scope)


class Ranks(Protocol):
    """Positions on leaderboards, from their index rows."""

    def counted(self, board: Board, score: int, now: int, *, expiring: bool) -> Counted:
        """How many have more than a score, and how many there are."""
        ...

    def best(self, board: Board, now: int, limit: int, *, expiring: bool) -> list[Place]:
        """The first so many on a board."""
        ...

    def around(self, board: Board, place: Place, now: int, limit: int, *, expiring: bool) -> list[Place]:
        """The ``limit`` places before one and after it, with itself in the middle."""
        ...
