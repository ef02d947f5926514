"""What a change of definitions asks for: everybody's index rows written, and everybody's states folded again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from threadline.engine.folding.person import own
from threadline.engine.maintenance import applying, indexes, marks
from threadline.engine.reading.ranks import Ranks
from threadline.engine.recording.recorder import Recorder
from threadline.kernel import ports
from threadline.kernel.applied import Advanced, DefinitionChange, Filling, Foretold, IndexPart
from threadline.kernel.errors import Conflict
from threadline.kernel.ids import short_hash
from threadline.kernel.projection import Row


class Maintenance:
    """Derived data of one store. Caches of this process are cleared where something behind them was rewritten."""

    def __init__(
        self,
        recorder: Recorder,
        ranks: Ranks,
        engine: ports.Ports,
        rehearsal: Callable[[], ports.Rehearsal],
        by_hand: int = 0,
    ) -> None:
        self._engine = engine
        self._rehearsal = rehearsal
        self.reloader: Callable[[], ports.Ports] | None = None
        """Puts another engine in the place of this one, by the definitions as they are now; set by a server."""
        self.checker: Callable[[str], str] | None = None
        """A text of all that is made by hand -> the fingerprint of the definitions with it; set by a server."""
        self.by_hand = by_hand
        """The version of what is made by hand that this process goes by; 0: none."""
        self._recorder = recorder
        self._ranks = ranks
        self._store = recorder.store
        self._catalogue = recorder.catalogue

    def rows(self, person: ports.Person, name: str) -> Iterable[Row]:
        """The index rows that a person's state asks for."""
        index = self._catalogue.index[name]
        rows = self._catalogue.projections[index].index.rows
        return () if rows is None else rows(own(person).states[index], person.workspace, person.id)

    def write_rows(self, name: str) -> int:
        """Write everybody's index rows, after a change of a projection; returns how many people were read.

        The projection may be gone: if nothing declared needs it any more, there is none of that name.
        """
        changed = [projection for projection in self._catalogue.projections if projection.name == name]
        people = indexes.write_rows(self._store, self._catalogue, changed)
        self._clear()
        return people

    def reload(self) -> ports.Maintenance:
        """Read the definitions again and put them in force; answers what does the same by the new ones."""
        if self.reloader is None:
            raise Conflict("definitions are read when a store is opened; open it again")
        return self.reloader().maintenance

    def fingerprint_with(self, by_hand: str) -> str:
        """The fingerprint of the definitions in force if this were made by hand; raises what `reload` raises."""
        if self.checker is None:
            raise Conflict("a definition is put in force by a server", hint="write it into a file of definitions")
        return self.checker(by_hand)

    def stale(self) -> tuple[str, ...]:
        """What is older than the definitions in force: ``people`` or names of a `Refresh`."""
        return applying.stale(self._store, self._catalogue)

    def filling(self, parts: Iterable[IndexPart]) -> Sequence[Filling]:
        """Which of these are not filled as of the definitions in force, and how far each is."""
        return marks.filling(self._store, self._catalogue, parts)

    def filled_as(self, parts: Iterable[IndexPart]) -> str:
        """A hash of the definitions by which these are filled: their own, and those of what they read."""
        return short_hash(*(marks.part_version(self._catalogue, part) for part in parts))

    def note_refreshed(self, name: str, after: str) -> None:
        """Note how far everybody was looked at by a `Refresh`: up to an id, or all of them if it is empty."""
        if after:
            marks.note_share(self._store, self._catalogue, name, after)
        else:
            marks.mark(self._store, self._catalogue, name)

    def changes(self) -> list[DefinitionChange]:
        """How the definitions in force differ from those that everybody was last brought up to."""
        return list(applying.changes(self._store, self._catalogue))

    def changed_projections(self) -> tuple[str, ...]:
        """The projections whose states have to be folded again for everybody."""
        return applying.changed_projections(self._store, self._catalogue)

    @property
    def fingerprint(self) -> str:
        """A hash of the definitions in force, the same in every process that goes by these."""
        return applying.fingerprint(self._catalogue)

    def advance(self, cursor: str, limit: int) -> Advanced:
        """Bring some people up to date, from a cursor on ("": from the beginning). It may be killed at any point."""
        advanced = applying.advance(self._store, self._catalogue, self._engine, cursor, limit)
        if not advanced.next:
            self._clear()
        return advanced

    def foretell(self, cursor: str, limit: int) -> Foretold:
        """What `advance` would cause for some people, rehearsed: nothing is written."""
        rehearsal = self._rehearsal()
        people, following = applying.foretell(self._store, self._catalogue, rehearsal.engine, cursor, limit)
        return Foretold(people, rehearsal.consequences, following)

    def refresh(self, cursor: str, limit: int) -> Advanced:
        """Look at everybody's segments, leaderboards and milestones again, from a cursor on, where states have changed
        without an event."""
        return applying.refresh(self._catalogue, self._engine, cursor, limit)

    def _clear(self) -> None:
        self._recorder.clear_caches()
        self._ranks.clear()
