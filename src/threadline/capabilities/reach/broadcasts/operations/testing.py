"""A broadcast as a test, sent to one address before it is sent to its audience."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.definition import ALL
from threadline.capabilities.reach.broadcasts.operations import BROADCASTS_GROUP
from threadline.capabilities.reach.broadcasts.operations.reading import BroadcastParams
from threadline.capabilities.reach.mail.operations.testing import ask_for_tests
from threadline.kernel.address import checked_address
from threadline.kernel.disclosure import PERSONAL
from threadline.kernel.operation import Context, operation


class TestParams(BroadcastParams, kw_only=True):
    """Which broadcast, to which address, and as whom it is filled in."""

    address: Annotated[str, Meta(description="Where the test goes.", min_length=3, max_length=320)]
    person: Annotated[
        PersonRef | None,
        Meta(description="Whose data fills it in, and whose events have it; else who has the address."),
    ] = None


class TestResult(msgspec.Struct, kw_only=True):
    """The tests wait in the outbox."""

    id: str
    address: Annotated[str, PERSONAL]
    variants: Annotated[list[str], Meta(description="The variants of which there is one; `all`: there are none.")]


@operation(
    "POST /v1/broadcasts/{id}/test",
    BROADCASTS_GROUP,
    done=("Sent a test of the broadcast {id}",),
    scope="admin",
    example=TestParams(id="spring-sale", address="ada@example.com"),
)
def test(context: Context, params: TestParams) -> TestResult:
    """Send each variant of a broadcast to one address, as a test that is not counted."""
    engine, workspace = context.engine, context.workspace
    address = checked_address(params.address, "address")
    broadcast = repository.get(engine.store, workspace, params.id).broadcast
    variants = [arm.name for arm in broadcast.arms] or [ALL]
    mails = [((params.id, variant), broadcast.message(variant)) for variant in variants]
    ask_for_tests(context, address, params.person, mails)
    return TestResult(id=params.id, address=address, variants=variants)
