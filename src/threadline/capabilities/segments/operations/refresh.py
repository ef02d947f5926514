"""Checking everybody's segments again, after definitions have changed."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.events.parameters import Page
from threadline.capabilities.segments.operations import SEGMENTS_GROUP
from threadline.capabilities.segments.operations.definitions import Segments
from threadline.capabilities.segments.operations.members import LOOKED_AT_MAX
from threadline.capabilities.segments.refresh import Needs, refresh
from threadline.kernel.operation import Context, Operation


class RefreshParams(Page, kw_only=True, forbid_unknown_fields=True):
    """From where to go on."""

    limit: Annotated[int, Meta(description="People to look at in this call.", ge=1, le=LOOKED_AT_MAX)] = LOOKED_AT_MAX


class RefreshResult(msgspec.Struct, kw_only=True):
    """How far it came. Calling again from ``next`` goes on; calling twice changes nothing more."""

    people: Annotated[int, Meta(description="People looked at.")]
    refreshed: Annotated[int, Meta(description="Those for whom something had to be told or a timer set.")]
    next: Annotated[str, Meta(description="Where to go on; empty when everybody has been looked at.")] = ""


def _refresh(segments: Segments, context: Context[Needs], params: RefreshParams) -> RefreshResult:
    page, following = context.engine.reader.people(context.workspace, params.cursor, params.limit)
    return RefreshResult(people=len(page), refreshed=refresh(segments, context.engine, page), next=following)


def operations(segments: Segments) -> list[Operation]:
    """The operation that checks these segments again."""
    return [
        Operation(
            name="segments_refresh", group=SEGMENTS_GROUP,
            summary="Check everybody's segments again, after definitions have changed.",
            params=RefreshParams, result=RefreshResult, run=partial(_refresh, segments), method="POST",
            path="/v1/segments/refresh", scope="admin", example=RefreshParams(),
        ),
    ]  # fmt: skip
