"""Mails of broadcasts that nobody asked for yet: who is not in an audience, held out, or not addressed yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from threadline.capabilities.ask.unsent.answer import About, Unsent, failing, unsent
from threadline.capabilities.ask.unsent.asked import Subject, Wanted, of_operation
from threadline.capabilities.foundation.conditions import Conditions, Step, read_json
from threadline.capabilities.foundation.conditions import Subject as Conditioned
from threadline.capabilities.profile.segments.operations.person import SegmentParams
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.audience import conditions_of
from threadline.capabilities.reach.broadcasts.definition import Audience, Broadcast
from threadline.capabilities.reach.broadcasts.events import HOLDOUT
from threadline.kernel.job import Job

_POLICY = "broadcasts"
NEWEST = 20
"""Broadcasts that are looked at where none is named."""
_STOPPED = {"cancelled": "broadcast_cancelled", "failed": "broadcast_failed", "paused": "broadcast_paused"}


class _Sending(NamedTuple):
    """A broadcast and how far it has come."""

    id: str
    broadcast: Broadcast
    created_at: int
    state: str
    job: Job | None

    @property
    def begins_at(self) -> int:
        """When it is resolved; 0: it was not started."""
        return self.broadcast.begins_at(self.job.created_at) if self.job is not None else 0


def of_broadcasts(subject: Subject, wanted: Wanted, asked: Collection[str]) -> Iterator[Unsent]:
    """The mails of broadcasts that were not asked for; ``asked`` are the occurrences of those that were."""
    if wanted.journey or wanted.rule or subject.engine.catalogue.policy(_POLICY) is None:
        return
    store, workspace = subject.engine.store, subject.context.workspace
    if wanted.broadcast:
        created = [repository.get(store, workspace, wanted.broadcast)]
    else:
        created, _ = repository.page(store, workspace, None, "", NEWEST)
    for document in created:
        templates = {document.broadcast.template, *(arm.template for arm in document.broadcast.arms)}
        if f"broadcast/{document.id}" not in asked and wanted.template in ("", *templates):
            job = subject.engine.jobs.find(workspace, repository.job_id(document.id))
            state = repository.state_of(subject.engine, workspace, document.id, job)
            yield from _of_broadcast(subject, _Sending(document.id, document.broadcast, document.at, state, job))


def _of_broadcast(subject: Subject, sending: _Sending) -> Iterator[Unsent]:
    id, broadcast = sending.id, sending.broadcast
    about = About(template=broadcast.template, broadcast=id)
    arm = _arm(subject, id)
    if sending.state == "draft" or sending.job is None:
        yield unsent(about, _STOPPED.get(sending.state, "broadcast_draft"))
    elif sending.state == "scheduled" and not sending.job.cursor:
        yield unsent(about, "broadcast_scheduled", until=sending.begins_at, is_waiting=True)
    elif arm is None and (sending.state in _STOPPED or sending.state == "resolving"):
        at = sending.job.changed_at
        yield unsent(about, _STOPPED.get(sending.state, "broadcast_running"), at=at)
    elif arm is None:
        yield unsent(about, "not_in_audience", at=sending.begins_at, conditions=_outside(subject, broadcast.audience))
    elif arm == HOLDOUT:
        yield unsent(_named(about, arm), "holdout", at=sending.begins_at)
    elif sending.state in _STOPPED:
        yield unsent(_named(about, arm), _STOPPED[sending.state], at=sending.job.changed_at)
    elif not arm:
        assert broadcast.winner is not None, "only its rule leaves somebody without an arm"
        yield unsent(about, "winner_awaited", until=broadcast.rest_begins_at(sending.begins_at), is_waiting=True)
    elif sending.state != "done":
        yield unsent(_named(about, arm), "broadcast_running", is_waiting=True)


def _named(about: About, arm: str) -> About:
    return About(template=about.template, broadcast=about.broadcast, arm=arm)


def _arm(subject: Subject, id: str) -> str | None:
    """The arm of the person in a broadcast, empty before the winner is known; None: they are no recipient."""
    recipient = repository.recipient_of(subject.engine.store, subject.context.workspace, id, subject.person.heads)
    return None if recipient is None else recipient.arm


def _outside(subject: Subject, audience: Audience | None) -> list[Step]:
    """What of an audience the person does not meet now."""
    audience = audience or Audience()
    if audience.segment:
        why = of_operation(
            subject.context, "segments_why", SegmentParams(id=subject.person.id, segment=audience.segment)
        )
        if why is not None and not why.member:
            return failing(why.steps)
    asked = Conditioned(subject.view.view, at=subject.now)
    tagged = [read_json({"field": "tags", "contains": tag}, "audience.tags") for tag in audience.tags]
    trees = [*map(Conditions, tagged), *filter(None, [conditions_of(audience)])]
    return next((failing(tree.explain(asked)) for tree in trees if not tree.test(asked)), [])
