"""Broadcasts as callers read them: one, the newest first or of a range of time, and the recipients of one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant, time_param
from threadline.capabilities.foundation.events.parameters import Next, Page, TimePage, checked_cursor
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.definition import Broadcast
from threadline.capabilities.reach.broadcasts.measuring import GAINED, PEOPLE, winner_of
from threadline.capabilities.reach.broadcasts.operations import BROADCASTS_GROUP
from threadline.capabilities.reach.broadcasts.projection import STATUS, STATUSES
from threadline.capabilities.reach.broadcasts.repository import Created, Recipient, rows_of
from threadline.capabilities.reach.feedback import rows as mail_rows
from threadline.capabilities.reach.feedback.counting import Counts, count
from threadline.capabilities.reach.mail.events import MAIL_SKIPPED
from threadline.kernel.disclosure import SENTENCE, not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.store import Store
from threadline.kernel.time import time_key

BroadcastId = Annotated[str, Meta(description="The id of a broadcast.", min_length=1, max_length=64)]
KnownBroadcast = Annotated[BroadcastId, names_a("broadcast")]
_CURSOR = re.compile(r"[0-9a-f]{16}\.[a-z0-9_-]{1,64}")
_PERSON = re.compile(r"[0-9a-f]{32}")
_STATUSES = tuple(sorted(set(STATUSES.values())))
LOOKED_AT_MAX = 1_000
"""Recipients looked at in one call, where not all of them may be meant."""
_BATCH = 100


WithResults = Annotated[
    bool, Meta(description="Whether to count the results of its mails too, which reads each of them.")
]


class BroadcastParams(Params, kw_only=True):
    """Which broadcast."""

    id: KnownBroadcast


class ShowParams(BroadcastParams, kw_only=True):
    """Which broadcast, and whether with its results."""

    results: WithResults = False


@key_fields("arm", "people", "gained")
class ArmResult(msgspec.Struct, kw_only=True):
    """An arm in the test of the winner rule."""

    arm: str
    people: int
    gained: Annotated[int, Meta(description="People who count for the metric of the winner rule.")]


@key_fields("id", "state", "audience", "done", "begins_at")
@not_personal
class BroadcastView(msgspec.Struct, kw_only=True):
    """A broadcast and how far it has come."""

    id: str
    state: Annotated[
        str,
        Meta(
            description="draft, scheduled, resolving, sending, done (everybody is addressed, mails may still wait in "
            "the outbox), paused, cancelled or failed."
        ),
    ]
    broadcast: Annotated[Broadcast, Meta(description="As it was created.")]
    created_at: Instant
    created_by: str
    subject: Annotated[
        str, Meta(description="Before it is filled in: its own, or its template's when it was created.")
    ] = ""
    sender: Annotated[str, Meta(description="Its own, or its template's when it was created.")] = ""
    job: Annotated[str, Meta(description="The id of its job; empty before it is started.")] = ""
    begins_at: Annotated[Instant | None, Meta(description="When it is resolved.")] = None
    due_at: Annotated[Instant | None, Meta(description="When it goes on, such as with the winner.")] = None
    audience: Annotated[int, Meta(description="Recipients so far, those held out included.")] = 0
    done: Annotated[int, Meta(description="Those who were addressed or held out so far.")] = 0
    addressed: Annotated[dict[str, int], Meta(description="By arm; `holdout` got nothing.")] = {}
    test: Annotated[list[ArmResult], Meta(description="By the winner rule, once measured.")] = []
    winner: Annotated[str, Meta(description="The arm that the rest gets; empty until that is known.")] = ""
    problem: Annotated[str, Meta(description="Why it has failed; empty otherwise."), SENTENCE] = ""
    waits_for: Annotated[
        str, Meta(description="Whom it waits for before it is resolved: a segment that is being filled, and how far.")
    ] = ""
    ended_at: Annotated[
        Instant | None, Meta(description="When the last recipient was addressed, or it failed or was cancelled.")
    ] = None
    results: Annotated[Counts | None, Meta(description="Counts of its mails, where `results` asks for them.")] = None


class BroadcastsParams(TimePage, kw_only=True):
    """Which page of those sent in a range of time, and whether with their results."""

    results: WithResults = False


class BroadcastsPage(msgspec.Struct, kw_only=True):
    """Broadcasts, the newest first."""

    broadcasts: list[BroadcastView]
    next: Next = ""


class RecipientsParams(Page, kw_only=True):
    """Of which broadcast, and which page."""

    id: KnownBroadcast
    status: Annotated[
        Literal["", "holdout", *_STATUSES],  # type: ignore[valid-type]
        Meta(description="Only recipients with this status; `holdout`: only those who got nothing, to compare."),
    ] = ""


@key_fields("identifiers", "arm", "statuses", "reason")
@not_personal
class RecipientView(msgspec.Struct, kw_only=True):
    """Somebody in the audience."""

    person: str
    identifiers: Identifiers
    arm: Annotated[str, Meta(description="`holdout`: gets nothing; empty: gets the winner later.")]
    statuses: Annotated[
        list[str],
        Meta(
            description="What events say: addressed, sent, skipped, withdrawn, parked, unknown, delivered, opened, "
            "clicked, bounced, complained, replied. Opens and clicks of machines are left out."
        ),
    ]
    reason: Annotated[str, Meta(description="Why the mail was skipped; empty otherwise."), SENTENCE] = ""


class RecipientsPage(msgspec.Struct, kw_only=True):
    """Recipients by id."""

    id: str
    recipients: list[RecipientView]
    next: Next = ""


def view_of(context: Context, created: Created, *, results: bool = False) -> BroadcastView:
    """A broadcast in the form in which it is read, with counts of what its mails led to if they are asked for."""
    engine, workspace, broadcast = context.engine, context.workspace, created.broadcast
    job = engine.jobs.find(workspace, repository.job_id(created.id))
    view = BroadcastView(
        id=created.id,
        state=repository.state_of(engine, workspace, created.id, job),
        broadcast=broadcast,
        created_at=instant(created.at),
        created_by=created.by,
        subject=created.subject,
        sender=created.sender,
    )
    if results:
        rows = mail_rows.rows_of(engine.store, workspace, "broadcast", created.id, None, None, "", PAGE_ITEMS_MAX)
        view.results = count(row.row for row in rows)[0]
    if job is None:
        return view
    counts = job.counts
    view.job, view.problem, view.waits_for = job.id, job.problem, job.waiting
    view.begins_at, view.due_at = instant(broadcast.begins_at(job.created_at)), instant(job.due_at)
    view.audience, view.done = counts.get("total", 0), counts.get("done", 0)
    view.ended_at = instant(job.changed_at) if has_ended(view) else None
    view.addressed = {name[10:]: count for name, count in counts.items() if name.startswith("addressed.")}
    view.test = [
        ArmResult(arm=arm.name, people=counts[f"{PEOPLE}{arm.name}"], gained=counts.get(f"{GAINED}{arm.name}", 0))
        for arm in broadcast.arms
        if f"{PEOPLE}{arm.name}" in counts
    ]
    if broadcast.winner is not None and (job.state == "done" or job.cursor.startswith("rest")):
        view.winner = winner_of(broadcast, counts)
    return view


def has_ended(view: BroadcastView) -> bool:
    """Whether nothing more happens to a broadcast by itself."""
    return view.state in ("done", "failed", "cancelled")


def _with_results(params: ShowParams | BroadcastsParams) -> bool:
    return params.results


@operation(
    "GET /v1/broadcasts/{id}",
    BROADCASTS_GROUP,
    is_long=_with_results,
    example=ShowParams(id="spring-sale"),
    ended=has_ended,
)
def show(context: Context, params: ShowParams) -> BroadcastView:
    """Show a broadcast and how far it has come."""
    created = repository.get(context.engine.store, context.workspace, params.id)
    return view_of(context, created, results=params.results)


@operation("GET /v1/broadcasts", BROADCASTS_GROUP, is_long=_with_results, example=BroadcastsParams(limit=20))
def list_(context: Context, params: BroadcastsParams) -> BroadcastsPage:
    """List broadcasts by when they are sent and drafts by when they were created, the newest first."""
    stop = time_param(params.stop)
    before = checked_cursor(params.cursor, _CURSOR) or ("" if stop is None else time_key(stop))
    start = time_param(params.start)
    created, following = repository.page(context.engine.store, context.workspace, start, before, params.limit)
    views = [view_of(context, item, results=params.results) for item in created]
    return BroadcastsPage(broadcasts=views, next=following)


@operation("GET /v1/broadcasts/{id}/recipients", BROADCASTS_GROUP, example=RecipientsParams(id="spring-sale"))
def recipients(context: Context, params: RecipientsParams) -> RecipientsPage:
    """List the recipients of a broadcast with variant and status, all or those of one status."""
    store, workspace, after = context.engine.store, context.workspace, checked_cursor(params.cursor, _PERSON)
    repository.get(store, workspace, params.id)
    size = max(params.limit, _BATCH) if params.status else params.limit
    rows = repository.recipients(store, workspace, params.id, after, size + 1)
    page: list[RecipientView] = []
    for _ in range(LOOKED_AT_MAX // size + 1):
        batch = list(islice(rows, size))
        for recipient in _views(store, workspace, params.id, batch):
            after = recipient.person
            if params.status in ("", recipient.arm, *recipient.statuses):
                page.append(recipient)
                if len(page) == params.limit:
                    break
        if len(page) == params.limit or len(batch) < size:
            break
    ended = (not batch or after == batch[-1].person) and next(rows, None) is None
    names = context.engine.reader.identifiers_of(workspace, [recipient.person for recipient in page])
    for recipient in page:
        recipient.identifiers = names.get(recipient.person, [])
    return RecipientsPage(id=params.id, recipients=page, next="" if ended else after)


def _views(store: Store, workspace: str, id: str, recipients: Sequence[Recipient]) -> Iterator[RecipientView]:
    """Recipients with what events say of them, still without their names."""
    statuses: dict[str, list[str]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for row in rows_of(store, STATUS, workspace, id, [recipient.person for recipient in recipients]):
        thread, _, status = row.key.sort.partition("/")
        statuses[thread].append(status)
        if status == STATUSES[MAIL_SKIPPED]:
            reasons[thread] = row.value.decode()
    for person, arm in recipients:
        yield RecipientView(
            person=person, identifiers=[], arm=arm, statuses=statuses.get(person, []), reason=reasons.get(person, "")
        )
