"""Tests of mails, sent to one address before anybody else gets them.

A test is a wish about the person whose data fills it in, so that a colleague's address makes nobody a person who
belongs to audiences from then on. It is marked, and no count has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.foundation.events.requests import place_and_key, wish
from threadline.capabilities.reach.mail.events import MAIL_REQUESTED
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.operations.templates import Name
from threadline.capabilities.reach.mail.templates import Templates
from threadline.kernel.address import checked_address
from threadline.kernel.disclosure import PERSONAL
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.operation import Context, Operation, Params, shaped_operation
from threadline.kernel.ports import Person


class MailTestParams(Params, kw_only=True):
    """Which template, to which address, and as whom it is filled in."""

    template: Name
    address: Annotated[str, Meta(description="Where the test goes.", min_length=3, max_length=320)]
    person: Annotated[
        PersonRef | None,
        Meta(description="Whose data fills it in, and whose events have it; else who has the address."),
    ] = None
    language: Annotated[
        str, Meta(description="One of the template's languages; else the one that the person gets.", max_length=32)
    ] = ""


class MailTestResult(msgspec.Struct, kw_only=True):
    """The test waits in the outbox."""

    template: str
    address: Annotated[str, PERSONAL]


@shaped_operation(
    "POST /v1/mail/templates/{template}/test",
    MAIL_GROUP,
    done=("Sent a test of the template {template}",),
    scope="admin",
    example=MailTestParams(template="welcome", address="ada@example.com"),
)
def test(templates: Templates, context: Context, params: MailTestParams) -> MailTestResult:
    """Send the template in force to one address, as a test that is not counted."""
    compiled = templates.named(params.template)
    address = checked_address(params.address, "address")
    properties = {"template": params.template, "variables": compiled.examples}
    if language := compiled.known_language(params.language):
        properties["language"] = language
    ask_for_tests(context, address, params.person, [((params.template, ""), properties)])
    return MailTestResult(template=params.template, address=address)


def ask_for_tests(
    context: Context, address: str, ref: str | None, mails: Sequence[tuple[tuple[str, str], Mapping[str, Any]]]
) -> None:
    """Have mails sent to one address as tests: of each what it is of, and what its request says. Raises `NotFound`
    where nobody has the address and ``ref`` names nobody."""
    person = _person(context, address, ref)
    at = str(context.engine.recorder.clock())
    # No cap, no quiet hours and no topic that somebody has left hold a test back.
    marks = {"address": address, "transactional": True, "test": True}
    events = []
    for (of, variant), properties in mails:
        identifier, key = place_and_key(context, person, "test", of, variant, address, at, named="")
        made = {"variables": {}, **properties, **marks}
        events.append(wish(context, identifier, MAIL_REQUESTED, made, key, vouched=True))
    for receipt in context.engine.recorder.record(events):
        if receipt.status == "rejected":
            raise InvalidValue(receipt.message, param="address")


def _person(context: Context, address: str, ref: str | None) -> Person:
    """Whose events have the test: it makes nobody a person."""
    if ref:
        return context.engine.reader.person(context.workspace, ref)
    try:
        return context.engine.reader.person(context.workspace, f"email:{address}")
    except NotFound:
        raise NotFound(
            f"nobody here has the address {address!r}, so that no data fills the test in",
            hint="Name somebody in `person`, such as user_id:42: it is filled in as for them, and goes to the address.",
            param="person",
        ) from None


def operations(templates: Templates) -> list[Operation]:
    """The operation that sends a test."""
    return [test(templates)]
