"""What delivery needs of the engine: some of its own parts, and the ports that preparations and jobs are given."""

from __future__ import annotations

from typing import Protocol

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.kernel.ports import Ports
from threadline.kernel.store import Store
from threadline.kernel.time import Clock


class EngineAccess(Ports, Protocol):
    """The parts of the engine with which effects, timers and jobs are carried out."""

    @property
    def store(self) -> Store:
        """The store that effects and timers wait in."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """The declared destinations."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock that decides what is due."""
        ...

    @property
    def recorder(self) -> Recorder:
        """Records the outcomes."""
        ...

    @property
    def reader(self) -> PersonReader:
        """Finds the person of each."""
        ...
