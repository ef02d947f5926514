"""What a server counts from its start to its end, whichever definitions are in force: metrics, limits, memory."""

from __future__ import annotations

from typing import NamedTuple

from threadline.kernel.limits import SIGN_INS_PER_MINUTE
from threadline.kernel.time import Clock
from threadline.settings import Settings
from threadline.surfaces.console.signing_in import FailureNotes
from threadline.surfaces.http.addresses.appaction import Window
from threadline.surfaces.http.addresses.public import PublicLimits
from threadline.surfaces.http.answers.descriptors import Room
from threadline.surfaces.http.answers.in_flight import InFlight
from threadline.surfaces.http.answers.metrics import Metrics
from threadline.surfaces.http.events.rate import Buckets
from threadline.surfaces.importing.uploads import Uploads


class Counts(NamedTuple):
    """Handed from one application to the next, so that a reload gives nobody a new allowance."""

    metrics: Metrics
    by_source: Buckets
    by_address: Buckets
    by_person: Buckets
    visitors: Window
    """Actions of visitors, by network address."""
    sign_ins: Window
    """Attempts to sign in, by network address."""
    sign_in_failures: FailureNotes
    public: PublicLimits
    in_flight: InFlight
    uploads: Uploads
    """Files to be imported, and how far each has come."""


def counts_from_zero(settings: Settings, clock: Clock, room: Room = Room()) -> Counts:  # noqa: B008 — immutable
    """Nothing counted yet."""
    in_flight = InFlight(settings.request_memory_bytes, settings.answer_memory_bytes, settings.streams_max, room)
    metrics = Metrics()
    in_flight.count = lambda what: metrics.refused.add((what,))
    return Counts(
        metrics,
        Buckets(settings.source_events_per_second, settings.source_burst_events),
        Buckets(settings.address_events_per_second, settings.address_burst_events),
        Buckets(settings.person_events_per_second, settings.person_burst_events),
        Window(settings.anonymous_actions_per_minute, clock),
        Window(SIGN_INS_PER_MINUTE, clock),
        FailureNotes(clock),
        PublicLimits(),
        in_flight,
        Uploads(),
    )
