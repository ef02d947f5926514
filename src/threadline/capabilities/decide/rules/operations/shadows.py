"""Shadows as callers use them: a version asked beside the one that counts, and how what it says compares."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.acting import ERROR
from threadline.capabilities.decide.rules.operations import RULES_GROUP
from threadline.capabilities.decide.rules.operations.decisions import decision_rows
from threadline.capabilities.decide.rules.operations.rules import KnownRule, Version
from threadline.capabilities.decide.rules.operations.versions import Note
from threadline.capabilities.decide.rules.projection import SHADOW_TABLE
from threadline.capabilities.decide.rules.views import DecisionView, recorded_view
from threadline.capabilities.foundation.events.forms import time_param
from threadline.capabilities.foundation.events.parameters import TimeRange
from threadline.kernel.disclosure import not_personal
from threadline.kernel.operation import Context, Params, operation

ROWS_MAX = 100_000
"""Decisions of one version that are counted for an answer."""
SAMPLES = 10


class ShadowParams(Params, kw_only=True):
    """Which version is to be asked as well."""

    id: KnownRule
    version: Annotated[
        Annotated[int, Meta(ge=0, le=99_999_999)],
        Meta(description="A tested version; 0 ends the shadow. Activating or retiring the version ends it too."),
    ]
    note: Note = ""


class ShadowResult(msgspec.Struct, kw_only=True):
    """The state of the rule after it."""

    id: str
    active: Annotated[int, Meta(description="The version that counts; 0 if there is none.")]
    shadow: Annotated[int, Meta(description="The version that runs beside it as a shadow; 0 if there is none.")]


@operation(
    "POST /v1/rules/{id}/shadow",
    RULES_GROUP,
    done=("Let version {version} of the rule {id} run as a shadow",),
    scope="admin",
    example=ShadowParams(id="risk-score", version=4),
)
def shadow(context: Context, params: ShadowParams) -> ShadowResult:
    """Run a tested version on live events beside the active one, without any effect."""
    head = repository.shadow(context, params.id, params.version, params.note)
    return ShadowResult(id=params.id, active=head.active, shadow=head.shadow)


class ReportParams(TimeRange, kw_only=True):
    """Of which version, and which stretch of time."""

    id: KnownRule
    version: Annotated[Version | None, Meta(description="The shadow of now if it is left out.")] = None


@not_personal
class Beside(msgspec.Struct, kw_only=True):
    """How often the active version had one status and the shadow another."""

    live: str
    shadow: str
    same: int
    changed: int


class Report(msgspec.Struct, kw_only=True):
    """The decisions of a shadow beside those that counted. Events that neither matched leave no trace."""

    id: str
    version: int
    decisions: int
    changed: int
    errors: Annotated[int, Meta(description="Errors of the shadow.")]
    matrix: list[Beside]
    samples: Annotated[list[DecisionView], Meta(description="The newest that differ, as the shadow says it.")]
    whole: Annotated[bool, Meta(description="False: there were more than are counted for one answer; name a `start`.")]


@operation(
    "GET /v1/rules/{id}/shadow", RULES_GROUP, example=ReportParams(id="risk-score", start="2026-03-01T00:00:00Z")
)
def shadow_report(context: Context, params: ReportParams) -> Report:
    """Compare the answers of a shadow on live events with those that counted."""
    version = params.version or repository.existing(context, params.id).shadow
    rows = decision_rows(context, SHADOW_TABLE, [params.id], time_param(params.start), time_param(params.stop))
    of_version = (row for row in rows if row.text.startswith(f"{version} "))
    by_outcome: dict[tuple[str, str], Beside] = {}
    differing: list[str] = []
    for row in islice(of_version, ROWS_MAX):
        _, status, live, same = row.text.split(" ")
        cell = by_outcome.setdefault((live, status), Beside(live=live, shadow=status, same=0, changed=0))
        if same == "same":
            cell.same += 1
        else:
            cell.changed += 1
            differing.append(row.event)
    events = [context.engine.log.event(context.workspace, id) for id in differing[:SAMPLES]]
    cells = [cell for _, cell in sorted(by_outcome.items())]
    changed = sum(cell.changed for cell in cells)
    return Report(
        id=params.id,
        version=version,
        decisions=changed + sum(cell.same for cell in cells),
        changed=changed,
        errors=sum(cell.same + cell.changed for cell in cells if cell.shadow == ERROR),
        matrix=cells,
        samples=[recorded_view(event, context.engine.reader.person_of(event).id) for event in events],
        whole=next(of_version, None) is None,
    )
