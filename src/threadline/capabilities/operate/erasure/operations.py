"""Erasing a person, and the erasures there were: preview, progress and certificates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor, next_of
from threadline.capabilities.foundation.events.requests import RequestKey
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.kernel.disclosure import PERSONAL, free
from threadline.kernel.erasure import Certificate, Erasure, certificate_of
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, Params, always, operation
from threadline.kernel.ports import Catalogue

ERASURES_GROUP = Group("erasures", "Erasures of people, with their certificates.")

EVENTS_AT_ONCE = 5_000
"""Events of a person who is erased before the call is answered; a job goes on with further ones."""
EVENTS, OTHER = "events", "other"
_CURSOR = re.compile("[0-9a-f]{32}")

Counts = Annotated[dict[str, int], Meta(description="How many, by kind; items of a table have its name.")]


class EraseParams(Params, kw_only=True):
    """Whom to erase, and why."""

    id: PersonRef
    reason: Annotated[
        str, Meta(description="Why; it stays in the certificate, so it should name nobody.", max_length=500)
    ] = ""
    dry_run: Annotated[bool, Meta(description="Only count what would be removed, and what would stay.")] = False
    request: RequestKey = ""


class EraseResult(msgspec.Struct, kw_only=True):
    """What was removed, or would be."""

    done: Annotated[bool, Meta(description="False: it was only counted, or a job goes on with it.")]
    erasure: Annotated[str, Meta(description="Its id, for `erasures_show`; empty if it was only counted.")] = ""
    removed: Counts
    summary: Annotated[
        Counts,
        Meta(description="`removed` by the files of an export that show it; `other`: what repeats it or leads to it."),
    ]
    remaining: Annotated[Counts, Meta(description="What stays as salted hashes.")]


@operation(
    "POST /v1/people/{id}/erase",
    PEOPLE_GROUP,
    private=frozenset({"id"}),
    done=("Erased somebody",),
    is_long=always,
    scope="admin",
    example=EraseParams(id="user_id:42", reason="ticket 1234", dry_run=True),
)
def erase(context: Context, params: EraseParams) -> EraseResult:
    """Erase a person for good, or count what that would remove."""
    erasures = context.engine.erasures
    if params.dry_run:
        preview = erasures.preview(context.workspace, params.id)
        summary = _summary(context.engine.catalogue, preview.removed)
        return EraseResult(done=False, removed=preview.removed, summary=summary, remaining=preview.remaining)
    erasure = erasures.begin(
        context.workspace, params.id, request=params.request, by=context.source, reason=params.reason
    )
    while erasure.state == "running" and erasure.events_total <= EVENTS_AT_ONCE:
        erasure = erasures.advance(context.workspace, erasure.id)
    certificate = certificate_of(erasure.certificate) if erasure.certificate else {"before": {}, "remaining": {}}
    remaining = {table: len(rows) for table, rows in certificate["remaining"].items()}
    return EraseResult(
        done=erasure.state == "done",
        erasure=erasure.id,
        removed=certificate["before"],
        summary=_summary(context.engine.catalogue, certificate["before"]),
        remaining=remaining,
    )


def _summary(catalogue: Catalogue, removed: Mapping[str, int]) -> dict[str, int]:
    """What is removed by the files of a person's archive that show it, the events first."""
    files = {EVENTS: EVENTS} | {table.name: table.shown_in for table in catalogue.tables if table.shown_in}
    summary = Counter[str]()
    for name, count in removed.items():
        summary[files.get(name, OTHER)] += count
    return {file: summary[file] for file in sorted(summary, key=lambda file: (file == OTHER, file != EVENTS, file))}


# --- the erasures there were --------------------------------------------------------------------


@key_fields("state", "begun_at", "id")
class ErasureView(msgspec.Struct, kw_only=True):
    """An erasure, and its certificate once it is done."""

    id: str
    state: Literal["running", "done"]
    begun_at: Instant
    by: str
    reason: Annotated[str, PERSONAL]
    events: Annotated[int, Meta(description="Events that are erased so far.")]
    events_total: int
    certificate: Annotated[
        dict[str, Any] | None,
        Meta(
            description="As it stands in the ledger: in canonical JSON (RFC 8785) it has the hash that the next one "
            "names; null while the erasure is running."
        ),
        free(*(set(Certificate.__struct_fields__) - {"reason"})),
    ] = None


def _view(erasure: Erasure) -> ErasureView:
    return ErasureView(
        id=erasure.id,
        state=erasure.state,
        begun_at=instant(erasure.begun_at),
        by=erasure.by,
        reason=erasure.reason,
        events=erasure.events,
        events_total=erasure.events_total,
        certificate=dict(certificate_of(erasure.certificate)) if erasure.certificate else None,
    )


class ErasuresParams(Page, kw_only=True):
    """Which page."""


class ErasuresPage(msgspec.Struct, kw_only=True):
    """Erasures by id."""

    erasures: list[ErasureView]
    next: Next = ""


@operation("GET /v1/erasures", ERASURES_GROUP, scope="admin", example=ErasuresParams(limit=20))
def list_(context: Context, params: ErasuresParams) -> ErasuresPage:
    """List the erasures of people, with their certificates."""
    after = checked_cursor(params.cursor, _CURSOR)
    page = context.engine.erasures.page(context.workspace, after, params.limit)
    return ErasuresPage(
        erasures=[_view(erasure) for erasure in page], next=next_of(page, params.limit, lambda erasure: erasure.id)
    )


class ErasureParams(Params, kw_only=True):
    """Which erasure."""

    id: Annotated[str, Meta(description="The id of an erasure.", min_length=1, max_length=64)]


@operation(
    "GET /v1/erasures/{id}",
    ERASURES_GROUP,
    scope="admin",
    example=ErasureParams(id="0123456789abcdef0123456789abcdef"),
    ended=lambda result: result.state == "done",
)
def show(context: Context, params: ErasureParams) -> ErasureView:
    """Show an erasure, how far it has come, and its certificate."""
    return _view(context.engine.erasures.find(context.workspace, params.id))


class ErasedIds(msgspec.Struct, kw_only=True):
    """Ids of events; each is a hash of the key that the event had."""

    ids: list[str]


@operation(
    "GET /v1/erasures/{id}/ids",
    ERASURES_GROUP,
    scope="admin",
    example=ErasureParams(id="0123456789abcdef0123456789abcdef"),
)
def ids(context: Context, params: ErasureParams) -> ErasedIds:
    """List the ids of the events that an erasure removed from the log."""
    context.engine.erasures.find(context.workspace, params.id)
    return ErasedIds(ids=list(context.engine.erasures.ids(context.workspace, params.id)))
