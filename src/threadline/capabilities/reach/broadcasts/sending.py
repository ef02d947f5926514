"""The job of a broadcast: its audience is resolved into rows, and every row becomes an event of its person.

With a winner rule the test share is sent first; when its time has come the arms are measured, and the rest is sent the
better one. The cursor is the phase and the person after whom it goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from threadline.capabilities.foundation.conditions.fields import PROFILE
from threadline.capabilities.foundation.jobs.filling import of_filled
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.audience import Resolver
from threadline.capabilities.reach.broadcasts.definition import Broadcast
from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED, DUE_AT, HOLDOUT, SOURCE
from threadline.capabilities.reach.broadcasts.measuring import measured, winner_of
from threadline.capabilities.reach.broadcasts.repository import Recipient
from threadline.kernel.event import Event
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.ports import Person, Ports
from threadline.kernel.store import Delete, Put
from threadline.kernel.time import HOUR, format_time, parse_duration

RESOLVE, SEND, MEASURE, REST = "resolve", "send", "measure", "rest"
"""The phases, in their order; the last two with a winner rule only."""


def _step(engine: Ports, job: Job, limit: int) -> Step:
    phase, _, after = (job.cursor or f"{RESOLVE}:").partition(":")
    id: str = job.params["broadcast"]
    broadcast = repository.get(engine.store, job.workspace, id).broadcast
    work = _Work(engine, job, id, broadcast, after, limit)
    return {RESOLVE: work.resolve, SEND: work.send, MEASURE: work.measure, REST: work.rest}[phase]()


class _Work:
    """One page of one broadcast."""

    def __init__(self, engine: Ports, job: Job, id: str, broadcast: Broadcast, after: str, limit: int) -> None:
        self._engine = engine
        self._job = job
        self._id = id
        self._broadcast = broadcast
        self._after = after
        self._limit = limit
        self._began = broadcast.begins_at(job.created_at)

    def resolve(self) -> Step:
        """Write a row for each person of the audience, with their arm, once everybody who belongs can be found."""
        resolver = Resolver(self._broadcast.audience)
        return of_filled(self._engine, self._job, resolver.parts, lambda: self._resolved(resolver))

    def _resolved(self, resolver: Resolver) -> Step:
        workspace, broadcast = self._job.workspace, self._broadcast
        filled_as = self._engine.maintenance.filled_as(resolver.parts)[:8]
        before, _, after = self._after.rpartition("/")
        if before != filled_as and self._after:  # the pages so far were of other definitions
            return Step(f"{RESOLVE}:", totals={"looked_at": 0, "total": 0})
        page = resolver.page(self._engine, workspace, self._engine.recorder.now(), after, self._limit)
        chosen = [Recipient(person, broadcast.arm_of(self._id, person)) for person in page.ids]
        # A worker that was killed at this page may have left rows of people who belong to the audience no more.
        rows = repository.recipients(self._engine.store, workspace, self._id, after, self._limit, page.next)
        left = {row.person for row in rows}.difference(page.ids)
        writes: list[Put | Delete] = [
            repository.recipient_delete(workspace, self._id, person) for person in sorted(left)
        ]
        writes += [repository.recipient_put(workspace, self._id, recipient) for recipient in chosen]
        counts = {"looked_at": page.looked_at, "total": len(chosen)}
        cursor = f"{RESOLVE}:{filled_as}/{page.next}" if page.next else f"{SEND}:"
        return Step(cursor, counts, writes=writes)

    def send(self) -> Step:
        """Address everybody who has an arm."""
        page, cursor = self._page(SEND, self._at_once)
        addressed = self._addressed([recipient for recipient in page if recipient.arm], self._began)
        if cursor or self._broadcast.winner is None:
            return addressed._replace(cursor=cursor, finished=not cursor, due_at=self._goes_on_at(page))
        return addressed._replace(cursor=f"{MEASURE}:", due_at=self._broadcast.rest_begins_at(self._began))

    def measure(self) -> Step:
        """Count for each arm of the test how many there are, and who has what the winner rule goes by."""
        winner = self._broadcast.winner
        assert winner is not None
        page, cursor = self._page(MEASURE)
        tested = [recipient for recipient in page if recipient.arm and recipient.arm != HOLDOUT]
        counts = measured(
            self._engine,
            self._job.workspace,
            self._id,
            tested,
            winner.metric,
            winner.event,
            parse_duration(winner.after),
        )
        return Step(cursor or f"{REST}:", counts)

    def rest(self) -> Step:
        """Address everybody else, all in the arm that did best."""
        page, cursor = self._page(REST, self._at_once)
        arm = winner_of(self._broadcast, self._job.counts)
        # By the draw and not by the rows: a page that is done again has some that bear their arm already.
        rest = [
            Recipient(recipient.person, arm)
            for recipient in page
            if not self._broadcast.arm_of(self._id, recipient.person)
        ]
        writes = [repository.recipient_put(self._job.workspace, self._id, recipient) for recipient in rest]
        step = self._addressed(rest, self._broadcast.rest_begins_at(self._began))
        return step._replace(cursor=cursor, finished=not cursor, writes=writes, due_at=self._goes_on_at(rest))

    @property
    def _at_once(self) -> int:
        """How many are addressed together: with a limit by the hour those of a minute."""
        per_hour = self._broadcast.per_hour
        return min(self._limit, max(per_hour // 60, 1)) if per_hour else self._limit

    def _goes_on_at(self, addressed: Sequence[Recipient]) -> int:
        """When the next are addressed after these; 0: at once."""
        per_hour = self._broadcast.per_hour
        return self._engine.recorder.clock() + len(addressed) * HOUR // per_hour if per_hour else 0

    def _page(self, phase: str, size: int = 0) -> tuple[list[Recipient], str]:
        size = size or self._limit
        rows = repository.recipients(self._engine.store, self._job.workspace, self._id, self._after, size)
        page = list(islice(rows, size))
        return page, f"{phase}:{page[-1].person}" if len(page) == size else ""

    def _addressed(self, recipients: Sequence[Recipient], at: int) -> Step:
        people = self._engine.reader.people_of(self._job.workspace, [recipient.person for recipient in recipients])
        present = [(people[recipient.person], recipient.arm) for recipient in recipients if recipient.person in people]
        counts = Counter(f"addressed.{arm}" for _, arm in present)
        counts["done"] = len(recipients)
        return Step(counts=counts, events=[self._event(person, arm, at) for person, arm in present])

    def _event(self, person: Person, arm: str, at: int) -> Event:
        properties: dict[str, Any] = {"broadcast": self._id, "arm": arm}
        if arm != HOLDOUT:
            properties |= self._broadcast.message(arm)
        if self._broadcast.in_zone_of_recipient:
            # Of the holdout too: what came of the mail is counted from then, for both.
            profile = self._engine.reader.as_of(person, self._engine.recorder.now()).view(PROFILE)
            properties[DUE_AT] = format_time(self._broadcast.due_at(profile))
        return Event(
            type=BROADCAST_ADDRESSED,
            identifiers=(person.identifiers[person.id],),
            occurred_at=at,
            key=f"{self._id}/{person.id}",
            source=SOURCE,
            source_type="internal",
            workspace=person.workspace,
            properties=properties,
        )


KIND = JobKind(repository.JOB_KIND, _step)
