"""What the composition root hands to a surface that has to open engines itself, as the command line does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from threadline.capabilities.foundation.definitions.versions import Made
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.operation import Operation
from threadline.kernel.store import Store
from threadline.settings import Settings

OnProgress = Callable[[int, int], None]
"""How much is done of how much."""


Copied = tuple[int, int, Path | None]
"""Events and bytes of a copy that was found whole, and where the store is now in whose place it was put."""


class SharedLimits(Protocol):
    """Limits that all processes count together."""

    def take(self, limits: Sequence[tuple[str, float, int]], events: int) -> float | None:
        """Count events under all of these (name, events per second, burst) and answer 0.0; or count none, and answer
        the seconds to wait. None: they cannot be counted together now."""
        ...

    def take_of_people(
        self,
        limits: Sequence[tuple[str, float, int]],
        events: int,
        person: tuple[float, int],
        people: Sequence[tuple[str, int]],
    ) -> tuple[float, list[float]] | None:
        """The same, and with it count the events of people (name, events), each under a limit (events per second,
        burst) of their own; answers the seconds to wait, and those of each. It counts none either if everybody has
        to wait, and of those who have to nothing."""
        ...


class LakeDoor(Protocol):
    """The lake that the settings name, and its curated zone."""

    def query(
        self, engine: Engine, query: str, on_progress: OnProgress = ...
    ) -> AbstractContextManager[tuple[list[str], Iterator[list[Any]]]]:
        """The names of the columns of an SQL query's result, and its rows. Without a lake the log is read once, and
        what was read is kept beside the store."""
        ...

    def curate(self, engine: Engine) -> Sequence[tuple[str, int, int]]:
        """Write the curated tables: name, rows and bytes of each."""
        ...

    def warehouse(self, engine: Engine, kind: str, target: Sequence[tuple[str, str]]) -> str:
        """What loads the curated tables into a kind of warehouse."""
        ...

    def sync(self, engine: Engine, limit: int | None, on_progress: OnProgress = ...) -> Mapping[str, Any]:
        """Bring the lake up to the end of the log, or by so many entries: events, files, bytes, position, erased; and
        compacted, the files that were put together where it was much."""
        ...

    def status(self, engine: Engine) -> Mapping[str, Any]:
        """How far the lake has come: position, waiting, behind_seconds and more."""
        ...

    def compact(self, engine: Engine) -> Mapping[str, Any]:
        """Put small files of the lake together: files before and after."""
        ...

    def verify(self, engine: Engine) -> Mapping[str, Any]:
        """Compare the lake with the log: events, rows, files, problems."""
        ...

    def refold(self, texts: Sequence[tuple[str, str]], workspace: str | None, spark: str | None) -> Mapping[str, Any]:
        """Fold everybody again from the lake, by these definitions: people, events, position, files, bytes.

        With ``spark`` on a Spark session, made on this master ("": that of the environment), else by DuckDB here.
        """
        ...

    def check_states(self, engine: Engine) -> Mapping[str, Any]:
        """Compare the states of the lake with those of the store: people, newer, differing."""
        ...


IcebergSynced = tuple[str, str, int, int, int]
"""Workspace and table, rows that were added, rows that were erased, files that were deleted."""
IcebergStanding = tuple[str, str, int, int, int, int, str]
"""Workspace and table, its position in the log, rows of the lake that it does not have, its rows and files, and where
its newest metadata is."""


class IcebergDoor(Protocol):
    """The Iceberg tables of the lake that the settings name."""

    def sync(self, engine: Engine) -> Sequence[IcebergSynced]:
        """Bring the lake up to the end of the log, and the tables up to the lake."""
        ...

    def compact(self, keep_seconds: float) -> Sequence[IcebergSynced]:
        """Join small files, and delete those that have been replaced for longer than this."""
        ...

    def standing(self) -> Sequence[IcebergStanding]:
        """How far each table has come."""
        ...


def _no_lake(settings: Settings) -> Any:
    raise InvalidSetting("this program was put together without a lake")


class Composition(NamedTuple):
    """The doors to the composition root. Surfaces are below it and cannot import it."""

    open_engine: Callable[[Settings, bool], Engine]
    """(settings, readonly) -> the engine on the store that the settings name."""
    open_served: Callable[[Settings], Engine]
    """The engine of a server: a process of its own answers questions about everybody."""
    open_store: Callable[[Settings, bool], Store]
    """(settings, readonly) -> that store alone. An engine would write what is declared into it."""
    reopen: Callable[[Engine, Settings], Engine]
    """An engine by the definitions as they are now, on the store of another whose place it takes."""
    catalogue: Callable[[Settings, str], Catalogue]
    """(settings, made by hand) -> what ships, shaped by the files that the settings name and by this text."""
    open_dispatcher: Callable[[Engine, Settings], Dispatcher]
    """The dispatcher of an engine, with the senders there are, as the settings have them."""
    operations: Callable[[], tuple[Operation, ...]]
    """Every operation there is; needs no store."""
    back_up: Callable[[Settings, Path, OnProgress], Copied]
    """(settings, file, told) -> the embedded store, copied into a file."""
    restore: Callable[[Settings, Path, OnProgress, bool], Copied]
    """(settings, backup, told, replace) -> the backup, put in the place of the embedded store."""
    writer: Callable[[Settings], str]
    """The id of the process that has the embedded store open for writing; empty: none has. It changes nothing."""
    find_loss: Callable[[Settings], str | None] = lambda settings: None
    """What the embedded store has lost of what it acknowledged, in words; None: nothing."""
    accept_loss: Callable[[Settings], tuple[Sequence[Path], Sequence[str]]] = lambda settings: ((), ())
    """Lets the embedded store be opened without that; copies of damaged files, and what is wrong with the rest."""
    files: Callable[[Settings], tuple[str, Sequence[Path]]] = lambda settings: ("", ())
    """What the embedded store's mark says, and those of its files that others than their owner may read."""
    open_limits: Callable[[Settings], SharedLimits | None] = lambda settings: None
    """The rate limits that processes share, if the settings name a place for them."""
    migrate: Callable[[Settings], Sequence[str]] = lambda settings: ()
    """Makes what the store is kept in, or brings it up to date; the steps that were taken."""
    rest: Callable[[Engine], None] = lambda engine: None
    """To be called before a process is frozen: readers of the feed need not wait for it then."""
    lake: Callable[[Settings], LakeDoor] = _no_lake
    """The lake, and what is read from it."""
    iceberg: Callable[[Settings], IcebergDoor] = _no_lake
    """The Iceberg tables of the lake."""
    would_be: Callable[[Engine, Settings, str], str] = lambda engine, settings, by_hand: ""
    """The fingerprint of the definitions that an engine would go by if this text were made by hand."""
    made_by_hand: Callable[[Settings], Made] = lambda settings: Made()
    """What is made by hand in the store, and the number of its version; nothing where no store is there yet."""

    def in_force(self, settings: Settings) -> Catalogue:
        """What the store of these settings goes by."""
        return self.catalogue(settings, self.made_by_hand(settings).text)
