"""What can be asked of the audit log: its entries, the newest first."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant, time_param
from threadline.capabilities.foundation.events.parameters import Next, TimePage, checked_cursor
from threadline.kernel.audit import AuditEntry
from threadline.kernel.disclosure import FREE, IDENTIFIERS, NOT_PERSONAL
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, operation

AUDIT_LOG_GROUP = Group("audit_log", "Who changed what, and when.")

_CURSOR = re.compile(r"[0-9a-f]{16}(\.[0-9]{4,})?")


class AuditLogParams(TimePage, kw_only=True):
    """Which entries."""

    who: Annotated[str, Meta(description="Only of this account, token or user.", max_length=100)] = ""
    operation: Annotated[
        str, Meta(description="Only calls of this operation, such as `people_merge`, or of a group.", max_length=100)
    ] = ""
    object: Annotated[str, Meta(description="Only what was about this, such as `user_id:42`.", max_length=600)] = ""
    outcome: Annotated[
        str, Meta(description="Only what came to this: done, refused or the code of an error.", max_length=100)
    ] = ""


@key_fields("at", "who", "operation", "outcome", "object")
class AuditEntryView(msgspec.Struct, kw_only=True):
    """One call of an operation that may change something."""

    at: Instant
    who: Annotated[
        str, Meta(description="The name of the account, the token or the user of the machine."), NOT_PERSONAL
    ]
    credential: Annotated[
        str, Meta(description="account, token or os_user; empty for a program that has the store open itself.")
    ]
    surface: Annotated[str, Meta(description="http, console, mcp, cli or python.")]
    operation: str
    object: Annotated[dict[str, str], Meta(description="What it was about: the parameters of the path."), IDENTIFIERS]
    given: Annotated[
        dict[str, Any], Meta(description="The other parameters in short, without text that was written."), FREE
    ]
    outcome: Annotated[str, Meta(description="done, refused or the code of the error.")]
    id: str


class AuditLogPage(msgspec.Struct, kw_only=True):
    """Entries, the newest first. A page may be short of its limit before the end."""

    entries: list[AuditEntryView]
    next: Next = ""


@operation("GET /v1/audit-log", AUDIT_LOG_GROUP, scope="admin", example=AuditLogParams(operation="people_merge"))
def list_(context: Context, params: AuditLogParams) -> AuditLogPage:
    """List what was changed by whom, the newest first."""
    entries, following = context.engine.audit_log.page(
        context.workspace,
        start=time_param(params.start),
        stop=time_param(params.stop),
        before=checked_cursor(params.cursor, _CURSOR),
        limit=params.limit,
        wanted=lambda entry: _wanted(params, entry),
    )
    return AuditLogPage(entries=[_view(entry) for entry in entries], next=following)


def _wanted(params: AuditLogParams, entry: AuditEntry) -> bool:
    return (
        params.who in ("", entry.who)
        and (params.operation in ("", entry.operation) or entry.operation.startswith(f"{params.operation}_"))
        and (params.object == "" or params.object in entry.object.values())
        and params.outcome in ("", entry.outcome)
    )


def _view(entry: AuditEntry) -> AuditEntryView:
    return AuditEntryView(
        at=instant(entry.at),
        who=entry.who,
        credential=entry.credential,
        surface=entry.surface,
        operation=entry.operation,
        object=entry.object,
        given=entry.given,
        outcome=entry.outcome,
        id=entry.id,
    )
