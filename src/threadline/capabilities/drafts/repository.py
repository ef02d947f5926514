"""Definitions that somebody proposes, until somebody else puts them in force or declines them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from threadline.kernel.errors import Conflict, LimitExceeded, NotFound
from threadline.kernel.limits import PROPOSALS_MAX
from threadline.kernel.operation import Context
from threadline.kernel.ports import WithStore
from threadline.kernel.store import Batch, Delete, Key, Put, query_pages
from threadline.kernel.typed import prepared

PROPOSAL = "proposal"
"""Table: the proposals of a workspace by section and name."""


@prepared
class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A definition as it was proposed, and what became of it."""

    section: str
    name: str
    text: str
    note: str
    by: str
    at: int
    declined_by: str = ""
    """Empty: it is open."""
    declined_at: int = 0
    reason: str = ""


class Stored(NamedTuple):
    """A proposal, and the version of its item."""

    proposal: Proposal
    version: int


_decode = msgspec.json.Decoder(Proposal).decode


def proposals(context: Context[WithStore]) -> Iterator[Proposal]:
    """All of the workspace, by section and name."""
    for item in query_pages(context.engine.store, PROPOSAL, context.workspace):
        yield _decode(item.value)


def find(context: Context[WithStore], section: str, name: str) -> Stored | None:
    """The proposal of this name."""
    item = context.engine.store.get([_key(context, section, name)])[0]
    return None if item is None else Stored(_decode(item.value), item.version)


def named(context: Context[WithStore], section: str, name: str) -> Stored:
    """The same; raises `NotFound`."""
    stored = find(context, section, name)
    if stored is None:
        raise NotFound(f"no {section} {name[:64]!r} is proposed", hint="`definitions_proposals` lists them all")
    return stored


def write(context: Context[WithStore], proposal: Proposal, version: int) -> None:
    """Write a proposal in the place of its version, 0 for none; raises `Conflict` if another was written meanwhile."""
    if not version and sum(1 for _ in proposals(context)) >= PROPOSALS_MAX:
        raise LimitExceeded(f"{PROPOSALS_MAX} definitions are proposed, and more may not be; decline some")
    key = _key(context, proposal.section, proposal.name)
    _commit(context, Put(key, msgspec.json.encode(proposal), version))


def remove(context: Context[WithStore], stored: Stored) -> None:
    """Take a proposal away; raises `Conflict` if another was written meanwhile."""
    _commit(context, Delete(_key(context, stored.proposal.section, stored.proposal.name), stored.version))


def _commit(context: Context[WithStore], write: Put | Delete) -> None:
    if context.engine.store.commit([Batch(writes=[write])])[0] is not None:
        raise Conflict("it was proposed anew meanwhile; look at it again")


def _key(context: Context[WithStore], section: str, name: str) -> Key:
    return Key(PROPOSAL, context.workspace, f"{section}/{name}")
