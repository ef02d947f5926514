"""Proposing a definition, and putting it in force: what a marketer writes, an operator accepts with one call."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts import by_hand, repository
from threadline.capabilities.decide.drafts.draft import Text, in_force, read_draft
from threadline.capabilities.decide.drafts.repository import Proposal
from threadline.capabilities.decide.drafts.sections import Name, SectionName, keys_by_hand
from threadline.capabilities.foundation.definitions.schema import DEFINITIONS_GROUP
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.kernel.documents import Stored
from threadline.kernel.errors import Conflict, Forbidden, InvalidDefinition
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, Params, always, operation

Note = Annotated[str, Meta(max_length=500)]


class DeclareParams(Params, kw_only=True):
    """One definition."""

    section: SectionName
    name: Name
    text: Annotated[Text, Meta(description="What stands under its name in a file of definitions.")]
    note: Annotated[Note, Meta(description="What it is for.")] = ""


class ProposeParams(DeclareParams, kw_only=True):
    """One definition, and why."""


class ProposalParams(Params, kw_only=True):
    """Which proposal."""

    section: SectionName
    name: Name


class AcceptParams(ProposalParams, kw_only=True):
    """Which proposal."""

    seen: Annotated[
        str, Meta(description="Its `at`, as it was looked at: refused if it was proposed anew since.", max_length=40)
    ] = ""


class DeclineParams(ProposalParams, kw_only=True):
    """Which proposal, and why it is not put in force."""

    reason: Note = ""


@key_fields("section", "name", "by", "at", "note")
class ProposalView(msgspec.Struct, kw_only=True):
    """A definition that somebody proposes. Nothing goes by it yet."""

    section: str
    name: str
    text: str
    note: str
    by: str
    at: Instant
    replaces: Annotated[bool, Meta(description="Whether one of this name is in force, whose place it would take.")]
    declined_by: Annotated[str, Meta(description="Who declined it; empty: it is open.")]
    declined_at: Instant | None
    reason: Annotated[str, Meta(description="Why it was declined.")]


class ProposalsResult(msgspec.Struct, kw_only=True):
    """Every proposal, by section and name."""

    proposals: list[ProposalView]


class DeclaredResult(msgspec.Struct, kw_only=True):
    """What is in force from now on."""

    section: str
    name: str
    version: Annotated[int, Meta(description="Of what is made by hand.")]
    job: Annotated[JobView, Meta(description="Recalculates everyone.")]


_WHERE = "/v1/definitions/proposals"

_EXAMPLE = "when: {field: features.monetary_total, greater_than: 500}"


@operation(
    f"POST {_WHERE}",
    DEFINITIONS_GROUP,
    done=("Proposed the {section} {name}",),
    scope="write",
    shown_on=frozenset({"http", "python"}),
    example=ProposeParams(section="segments", name="big_spenders", text=_EXAMPLE, note="for the spring sale"),
)
def propose(context: Context, params: ProposeParams) -> ProposalView:
    """Propose a definition, in the place of what you have proposed under its name."""
    by_hand.refuse_in_file(params.section, params.name, by_hand.in_file(context, params.section, params.name))
    _refuse_wrong(context, params.section, params.name, params.text)
    before = repository.find(context, params.section, params.name)
    if before is not None and not before.document.declined_by and before.document.by != context.source:
        raise Conflict(
            f"{before.document.by} proposes {params.name!r} already, and it is still open",
            hint="Choose another name, or ask for it to be accepted, declined or withdrawn first.",
            param="name",
        )
    made = Proposal(
        section=params.section, name=params.name, text=params.text, note=params.note, by=context.source, at=context.now
    )
    repository.write(context, made, 0 if before is None else before.version)
    return _view(context, made)


def _refuse_wrong(context: Context, section: str, name: str, text: str) -> None:
    read = read_draft(context, text, section, name)
    if read.problems:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")


def _view(context: Context, proposal: Proposal) -> ProposalView:
    keys = keys_by_hand(context.engine.catalogue, proposal.section, proposal.name)
    return ProposalView(
        section=proposal.section,
        name=proposal.name,
        text=proposal.text,
        note=proposal.note,
        by=proposal.by,
        at=instant(proposal.at),
        replaces=in_force(context.engine.catalogue).written(keys) is not None,
        declined_by=proposal.declined_by,
        declined_at=instant(proposal.declined_at) if proposal.declined_by else None,
        reason=proposal.reason,
    )


@operation(f"GET {_WHERE}", DEFINITIONS_GROUP, shown_on=frozenset({"http", "python"}))
def proposals(context: Context, params: NoParams) -> ProposalsResult:
    """List the definitions that are proposed."""
    return ProposalsResult(proposals=[_view(context, proposal) for proposal in repository.proposals(context)])


@operation(
    f"POST {_WHERE}/{{section}}/{{name}}/decline",
    DEFINITIONS_GROUP,
    done=("Declined the proposed {section} {name}",),
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=DeclineParams(section="segments", name="big_spenders", reason="there is one like it"),
)
def decline(context: Context, params: DeclineParams) -> ProposalView:
    """Decline a proposed definition; take one that was declined off the list."""
    proposal, version = repository.named(context, params.section, params.name)
    declined = msgspec.structs.replace(
        proposal, declined_by=context.source, declined_at=context.now, reason=params.reason
    )
    if proposal.declined_by:
        repository.remove(context, Stored(proposal, version))
    else:
        repository.write(context, declined, version)
    return _view(context, declined)


@operation(
    f"POST {_WHERE}/{{section}}/{{name}}/withdraw",
    DEFINITIONS_GROUP,
    done=("Withdrew their proposed {section} {name}",),
    scope="write",
    shown_on=frozenset({"http", "python"}),
    example=ProposalParams(section="segments", name="big_spenders"),
)
def withdraw(context: Context, params: ProposalParams) -> ProposalView:
    """Withdraw a definition that you have proposed."""
    stored = repository.named(context, params.section, params.name)
    if stored.document.by != context.source:
        raise Forbidden(
            f"{params.name!r} is proposed by {stored.document.by}, who alone may withdraw it",
            hint="An operator or an admin declines what others propose.",
        )
    repository.remove(context, stored)
    return _view(context, stored.document)


@operation(
    f"POST {_WHERE}/{{section}}/{{name}}/accept",
    DEFINITIONS_GROUP,
    done=("Put the proposed {section} {name} in force",),
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=AcceptParams(section="segments", name="big_spenders"),
)
def accept(context: Context, params: AcceptParams) -> DeclaredResult:
    """Put a proposed definition in force: it becomes part of what is made by hand, for everybody."""
    seen = repository.named(context, params.section, params.name)

    def proposal() -> Stored[Proposal]:
        stored = repository.named(context, params.section, params.name)
        if (params.seen and params.seen != instant(stored.document.at)) or stored.version != seen.version:
            raise Conflict("it was proposed anew meanwhile; look at it again")
        return stored

    proposal()
    proposed = seen.document
    _refuse_wrong(context, params.section, params.name, proposed.text)
    return _shown(params, by_hand.put(context, params.section, params.name, proposed.text, proposed.note, proposal))


@operation(
    "POST /v1/definitions/declare",
    DEFINITIONS_GROUP,
    done=("Put the {section} {name} in force",),
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=DeclareParams(section="segments", name="big_spenders", text=_EXAMPLE),
)
def declare(context: Context, params: DeclareParams) -> DeclaredResult:
    """Put a definition in force: it becomes part of what is made by hand, for everybody."""
    _refuse_wrong(context, params.section, params.name, params.text)

    def proposal() -> Stored[Proposal] | None:
        return repository.find(context, params.section, params.name)

    return _shown(params, by_hand.put(context, params.section, params.name, params.text, params.note, proposal))


def _shown(params: ProposalParams | DeclareParams, done: by_hand.InForce) -> DeclaredResult:
    return DeclaredResult(section=params.section, name=params.name, version=done.number, job=done.job)
