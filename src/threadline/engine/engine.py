"""The engine: one store, one catalogue, one clock, and a part for each thing that operations build on."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadline.engine.accounts import Accounts
from threadline.engine.audit_log import AuditLog
from threadline.engine.credentials import Credentials
from threadline.engine.damage import DamagedEvents
from threadline.engine.definition_history import DefinitionHistory, remember
from threadline.engine.delivery.administration import Delivery
from threadline.engine.doctor import Doctor
from threadline.engine.erasure.saga import Erasures
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.jobs.jobs import Jobs
from threadline.engine.maintenance import marks
from threadline.engine.maintenance.applying import put_applied
from threadline.engine.maintenance.definition_changes import Maintenance
from threadline.engine.public_address import PublicAddress
from threadline.engine.reading.event_log import EventLog
from threadline.engine.reading.index_rows import IndexRows
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.reading.ranks import Ranks
from threadline.engine.recording.merging import IdentityAdministration
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.rejected_decisions import RejectedLog
from threadline.engine.signer import Signer
from threadline.engine.simulation.rehearsal import Rehearsal
from threadline.engine.simulation.simulations import Simulations
from threadline.engine.surroundings import ALONE, Surroundings
from threadline.kernel.store import Store
from threadline.kernel.time import Clock


class Engine:
    """Everything that works on one store; the implementation of `threadline.kernel.ports.Ports`.

    Thread-safe. Close it to release the store; a fork has to open its own.
    """

    def __init__(self, store: Store, catalogue: Catalogue, clock: Clock, surroundings: Surroundings = ALONE) -> None:
        self.store = store
        self.catalogue = catalogue
        self.clock = clock
        self.recorder = Recorder(
            store,
            catalogue,
            clock,
            tracing=surroundings.tracing,
            recorded_until=surroundings.recorded_until,
            shared_refresh_seconds=surroundings.rules_refresh_seconds,
        )
        self.shared = self.recorder.shared
        self.damage = DamagedEvents(store, clock)
        self.reader = PersonReader(store, catalogue, self.recorder.recent, self.damage.note)
        self.rows = IndexRows(store)
        self.ranks = Ranks(store, clock, self.recorder.committing, surroundings.leaderboard_refresh_seconds)
        self.recorder.watchers.append(self.ranks.committed)
        remember(store, catalogue, clock)  # first: it refuses versions that have changed
        marks.prepare(store, catalogue, put_applied(catalogue))
        self.credentials = Credentials(
            store, clock, surroundings.fixed_credentials, cache_seconds=surroundings.credential_cache_seconds
        )
        self.audit_log = AuditLog(store, clock)
        self.accounts = Accounts(store, clock, self.credentials)
        self.signer = Signer(store)
        self.public_address = surroundings.public_address or PublicAddress("")
        self.web = surroundings.web
        self.confined = surroundings.confined
        self.exports = surroundings.exports
        self.log = EventLog(store, self.credentials, self.damage, surroundings.forms)
        self.rejected = RejectedLog(self.recorder, surroundings.readers)
        self.identity = IdentityAdministration(self.recorder, self.reader, self.rehearsal)
        self.delivery = Delivery(self.recorder, self.reader)
        self.definition_history = DefinitionHistory(store)
        self.simulations = Simulations(store, catalogue, surroundings.activation_changed_max)
        self.jobs = Jobs(store, catalogue.job_kinds, clock)
        self.erasures = Erasures(self)
        self.maintenance = Maintenance(self.recorder, self.ranks, self, self.rehearsal)
        self.doctor = Doctor(store, catalogue, self.delivery, self.maintenance, self.damage)
        # Last: both read by the other parts.
        self.search = surroundings.search(self)
        self.analytics = surroundings.analytics(self)

    def rehearsal(self) -> Rehearsal[Engine]:
        """An engine like this one, on what the store has now: nothing that it writes lasts, and nothing is sent."""
        return Rehearsal(self.store, lambda store: Engine(store, self.catalogue, self.clock))

    def now(self) -> int:
        """The instant to read at: after everything that this process has recorded. See `threadline.kernel.time`."""
        return self.recorder.now()

    def reading(self, seconds: float | None = None) -> AbstractContextManager[None]:
        """A context for the reads of a surface: the writer of this process lets them go first, for so long."""
        return self.recorder.readers.reading(seconds)

    def close(self) -> None:
        """Release the store. In a fork it does nothing: the store is its parent's."""
        if not self.recorder.forked:
            self.confined.close()
            self.search.close()
            self.analytics.close()
            self.store.close()
            if self.recorder.tracing is not None:
                self.recorder.tracing.close()
