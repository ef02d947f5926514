"""What the doctor sees of a running server."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.disclosure import SENTENCE, not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, always, operation


@key_fields("what", "seen")
@not_personal
class FindingView(msgspec.Struct, kw_only=True):
    """One thing looked at."""

    what: str
    sign: Annotated[
        Literal["ok", "note", "fault"],
        Meta(description="note: somebody should look at it; fault: something is wrong."),
    ]
    seen: Annotated[str, Meta(description="What was seen, and what to do where it is not well."), SENTENCE]
    sentence: Annotated[str, Meta(description="How it stands, in a sentence."), SENTENCE] = ""
    since: Annotated[Instant | None, Meta(description="Since when it is not well, where that is known.")] = None
    to_do: Annotated[str, Meta(description="What to do about it; empty where it is well."), SENTENCE] = ""


class DoctorResult(msgspec.Struct, kw_only=True):
    """Everything that was looked at."""

    well: Annotated[bool, Meta(description="Whether there is no fault.")]
    findings: list[FindingView]


@operation("GET /v1/doctor", is_long=always, shown_on=frozenset({"http", "python"}))
def doctor(context: Context, params: NoParams) -> DoctorResult:
    """Look whether all is well: what waits, the clock, damage, checksums, definitions that are not applied."""
    findings = context.engine.doctor.findings(context.now)
    return DoctorResult(
        well=all(finding.sign != "fault" for finding in findings),
        findings=[
            FindingView(
                what=finding.what,
                sign=finding.sign,
                seen=finding.seen,
                sentence=finding.sentence,
                since=instant(finding.since) if finding.since else None,
                to_do=finding.to_do,
            )
            for finding in findings
        ],
    )
