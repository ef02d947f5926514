"""What delivery needs of the engine."""

from __future__ import annotations

from typing import Protocol

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.kernel.ports import Ports
from threadline.kernel.store import Store
from threadline.kernel.time import Clock


class EngineAccess(Ports, Protocol):
    """The engine with which effects and timers are carried out; preparations get it as `Ports`."""

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
