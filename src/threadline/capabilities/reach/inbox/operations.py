"""Read and clear the development inbox. Where mail has another provider, there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, page_of
from threadline.capabilities.reach.inbox.messages import parts_of
from threadline.kernel.errors import NotFound
from threadline.kernel.inbox import INBOX, PROVIDER_URL, InboxMessage, body_key, summaries, summary_key
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import BATCH_WRITES_MAX, PAGE_ITEMS_MAX
from threadline.kernel.operation import Context, Group, NoParams, Params, operation
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Delete, Item

INBOX_GROUP = Group("inbox", "The development inbox: mail that never left this machine.")
Id = Annotated[str, Meta(description="A message's id, as `inbox_list` gives it.", min_length=1, max_length=100)]


class InboxListParams(Page, kw_only=True):
    """Which messages, and which page of them."""

    to: Annotated[str, Meta(description="Only to addresses that contain this.", max_length=320)] = ""


@key_fields("at", "to", "subject", "id")
class InboxLine(msgspec.Struct, kw_only=True):
    """A message in the list."""

    id: str
    message: Annotated[str, Meta(description="The id of the effect that sent it, as in its Message-ID.")]
    to: str
    sender: Annotated[str, Meta(description="The envelope sender.")]
    subject: str
    template: str
    at: Instant
    size: Annotated[int, Meta(description="In bytes.")]


class InboxListResult(msgspec.Struct, kw_only=True):
    """Messages, the newest first."""

    messages: list[InboxLine]
    next: Next = ""


class InboxShowParams(Params, kw_only=True):
    """Which message."""

    id: Id


class InboxHeader(msgspec.Struct, kw_only=True):
    """A header."""

    name: str
    value: str


class InboxAttachment(msgspec.Struct, kw_only=True):
    """A part that is neither of the texts."""

    name: str
    type: str
    size: Annotated[int, Meta(description="In bytes.")]


class InboxShowResult(InboxLine, kw_only=True):
    """A message and its parts."""

    headers: list[InboxHeader]
    html: str
    text: str
    links: Annotated[list[str], Meta(description="Where the HTML part leads to.")]
    attachments: list[InboxAttachment]
    raw: Annotated[str, Meta(description="The message as it was handed over; a large one is cut.")]


class InboxClearResult(msgspec.Struct, kw_only=True):
    """How many messages were removed."""

    removed: int


def has_inbox(engine: Ports) -> bool:
    """Whether mail goes to the inbox."""
    queues = engine.catalogue.queues.values()
    return any(queue.kind == "mail" and queue.destination.url == PROVIDER_URL for queue in queues)


def refuse_elsewhere(engine: Ports) -> None:
    """Raise `NotFound` unless mail goes to the inbox."""
    if not has_inbox(engine):
        hint = "It is there where the section `mail` has the provider `inbox:`, its default."
        raise NotFound("there is no development inbox: mail is sent by another provider, or not at all", hint=hint)


@operation("GET /v1/dev/inbox", INBOX_GROUP, example=InboxListParams(to="ana@example.com"))
def list_(context: Context, params: InboxListParams) -> InboxListResult:
    """List mail that was sent to the development inbox."""
    refuse_elsewhere(context.engine)
    wanted = params.to.lower()
    lines = (_line(item) for item in _newest_first(context, params.cursor))
    messages, following = page_of(
        (line for line in lines if wanted in line.to.lower()), params.limit, lambda line: line.id
    )
    return InboxListResult(messages=messages, next=following)


def _newest_first(context: Context, before: str) -> Iterator[Item]:
    """The summaries, the newest first, before the one with this id."""
    while True:
        page = context.engine.store.query(
            INBOX, summaries(context.workspace), stop=before or None, limit=PAGE_ITEMS_MAX, reverse=True
        )
        yield from page
        if len(page) < PAGE_ITEMS_MAX:
            return
        before = page[-1].key.sort


def _line(item: Item) -> InboxLine:
    summary = msgspec.msgpack.decode(item.value, type=InboxMessage)
    return InboxLine(
        id=summary.id,
        message=summary.message,
        to=summary.to,
        sender=summary.sender,
        subject=summary.subject,
        template=summary.template,
        at=instant(summary.at),
        size=summary.size,
    )


@operation(
    "GET /v1/dev/inbox/{id}",
    INBOX_GROUP,
    example=InboxShowParams(id="00060d1a2b3c4d5e.0123456789abcdef0123456789abcdef"),
)
def show(context: Context, params: InboxShowParams) -> InboxShowResult:
    """Show a mail of the development inbox: headers, HTML, text, links and the raw message."""
    refuse_elsewhere(context.engine)
    keys = [key(context.workspace, params.id) for key in (summary_key, body_key)]
    summary, body = context.engine.store.get(keys)
    if summary is None or body is None:
        raise NotFound(f"there is no message {params.id!r} in the inbox")
    line, parts = _line(summary), parts_of(body.value)
    return InboxShowResult(
        **msgspec.structs.asdict(line),
        headers=[InboxHeader(name=name, value=value) for name, value in parts.headers],
        html=parts.html,
        text=parts.text,
        links=parts.links,
        attachments=[
            InboxAttachment(name=attachment.name, type=attachment.type, size=attachment.size)
            for attachment in parts.attachments
        ],
        raw=body.value.decode("utf-8", "replace"),
    )


@operation("POST /v1/dev/inbox/clear", INBOX_GROUP, done=("Emptied the development inbox",), scope="write")
def clear(context: Context, params: NoParams) -> InboxClearResult:
    """Remove all mail from the development inbox."""
    refuse_elsewhere(context.engine)
    ids = [item.key.sort for item in _newest_first(context, "")]
    size = BATCH_WRITES_MAX // 2
    for start in range(0, len(ids), size):
        gone = [
            Delete(key(context.workspace, id)) for id in ids[start : start + size] for key in (summary_key, body_key)
        ]
        context.engine.store.commit([Batch(writes=gone)])
    return InboxClearResult(removed=len(ids))
