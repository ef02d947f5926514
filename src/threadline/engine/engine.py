"""The engine: one store, one catalogue, one clock, and a part for each thing that operations build on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from threadline.engine.accounts import Accounts
from threadline.engine.audit_log import AuditLog
from threadline.engine.credentials import CACHE_SECONDS, Credential, Credentials
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
from threadline.engine.password_links import PasswordLinks
from threadline.engine.provider_accounts import ProviderAccounts
from threadline.engine.public_address import PublicAddress
from threadline.engine.reading.event_log import EventLog
from threadline.engine.reading.index_rows import IndexRows
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.reading.ranks import Ranks
from threadline.engine.reading.values_anew import ValuesAnew
from threadline.engine.recording.merging import IdentityAdministration
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.rejected_log import RejectedLog
from threadline.engine.recording.working_set import PEOPLE_CACHE_BYTES
from threadline.engine.second_factors import SecondFactors
from threadline.engine.signer import Signer
from threadline.engine.simulation.rehearsal import Rehearsal
from threadline.engine.simulation.simulations import Simulations
from threadline.engine.stand_ins import NoAnalytics, NoIndex, Offline
from threadline.engine.tracing import Tracing
from threadline.kernel.analytics import AnalyticsPort
from threadline.kernel.confined import Confined, Unconfined
from threadline.kernel.event import Event
from threadline.kernel.object_storage import Storage
from threadline.kernel.ports import PeopleValues
from threadline.kernel.rejected import Reader
from threadline.kernel.roles import Role
from threadline.kernel.search import SearchIndex
from threadline.kernel.store import Store
from threadline.kernel.time import Clock
from threadline.kernel.web import Web


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What an engine has of the world around it, from its composition root. By default nothing: it works alone."""

    web: Web = field(default_factory=Offline)
    confined: Confined = field(default_factory=Unconfined)
    public_address: PublicAddress | None = None
    """None: unknown, until a server says its own."""
    exports: Callable[[], Storage] | None = None
    search: Callable[[Engine], SearchIndex] = lambda engine: NoIndex()
    """Makes the index of an engine whose other parts are there."""
    analytics: Callable[[Engine], AnalyticsPort] = lambda engine: NoAnalytics()
    people_values: Callable[[Engine], PeopleValues] | None = None
    """None: nothing is kept of them between two questions."""
    readers: Mapping[str, Reader] = field(default_factory=dict)
    """Form of a rejected payload -> how to read it again; only the composition root knows the wire formats."""
    forms: Mapping[str, Callable[[Event], dict[str, Any]]] = field(default_factory=dict)
    """Member of `Event.wire` -> how the message that an event came in is written as it came."""
    fixed_credentials: Sequence[Credential] = ()
    """Those of the settings, which are never stored."""
    credential_cache_seconds: float = CACHE_SECONDS
    second_factor_roles: frozenset[Role] = frozenset()
    """Roles whose accounts do not sign in without a second factor."""
    rules_refresh_seconds: float | None = 0.0
    """See `SharedValues.refresh_seconds`."""
    leaderboard_refresh_seconds: float | None = None
    """See `Ranks.refresh_seconds`."""
    activation_changed_max: float | None = None
    """See `Simulations.activation_changed_max`."""
    people_cache_bytes: int = PEOPLE_CACHE_BYTES
    """Memory for people whom the recorder keeps between calls."""
    tracing: Tracing | None = None
    by_hand: int = 0
    """The version of what is made by hand that the catalogue was made with."""
    recorded_until: int = 0
    """The instant right after what an engine has recorded in whose place this one is put."""


ALONE = Surroundings()


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
            unfilled=partial(marks.unfilled, store, catalogue),
            people_cache_bytes=surroundings.people_cache_bytes,
        )
        self.shared = self.recorder.shared
        self.damage = DamagedEvents(store, clock)
        self.reader = PersonReader(store, catalogue, self.recorder.recent, self.damage.note)
        self.rows = IndexRows(store)
        self.ranks = Ranks(
            store,
            clock,
            self.recorder.committing,
            surroundings.leaderboard_refresh_seconds,
            self.recorder.watchers.append,
        )
        remember(store, catalogue, clock)  # first: it refuses versions that have changed
        marks.prepare(store, catalogue, put_applied(catalogue))
        self.credentials = Credentials(
            store, clock, surroundings.fixed_credentials, cache_seconds=surroundings.credential_cache_seconds
        )
        self.audit_log = AuditLog(store, clock)
        self.signer = Signer(store)
        self.accounts = Accounts(store, clock, self.credentials, self.signer, surroundings.second_factor_roles)
        self.second_factors = SecondFactors(self.accounts)
        self.password_links = PasswordLinks(self.accounts)
        self.provider_accounts = ProviderAccounts(self.accounts)
        self.public_address = surroundings.public_address or PublicAddress("")
        self.web = surroundings.web
        self.confined = surroundings.confined
        self.exports = surroundings.exports
        self.log = EventLog(store, self.credentials, self.damage, surroundings.forms)
        self.rejected = RejectedLog(store, self.recorder.record_requests, surroundings.readers)
        self.identity = IdentityAdministration(self.recorder, self.reader, self.rehearsal)
        self.delivery = Delivery(self)
        self.definition_history = DefinitionHistory(store)
        self.simulations = Simulations(store, catalogue, surroundings.activation_changed_max)
        self.jobs = Jobs(store, catalogue.job_kinds, clock)
        self.erasures = Erasures(self)
        self.maintenance = Maintenance(self.recorder, self.ranks, self, self.rehearsal, surroundings.by_hand)
        self.doctor = Doctor(store, catalogue, self.delivery, self.maintenance, self.damage, self.recorder.people_cache)
        # Last: they read by the other parts.
        self.search = surroundings.search(self)
        self.analytics = surroundings.analytics(self)
        make_values = surroundings.people_values
        self.people_values = ValuesAnew(self.reader) if make_values is None else make_values(self)

    def rehearsal(self) -> Rehearsal[Engine]:
        """An engine like this one, on what the store has now: nothing that it writes lasts, and nothing is sent."""
        return Rehearsal(self.store, lambda store: Engine(store, self.catalogue, self.clock))

    def now(self) -> int:
        """The instant to read at: after everything that this process has recorded. See `threadline.kernel.time`."""
        return self.recorder.now()

    def close(self) -> None:
        """Release the store. In a fork it does nothing: the store is its parent's."""
        if not self.recorder.forked:
            self.confined.close()
            self.search.close()
            self.analytics.close()
            self.people_values.close()
            self.store.close()
            if self.recorder.tracing is not None:
                self.recorder.tracing.close()
