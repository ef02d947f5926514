"""Mail addresses as consent knows them: of a workspace, under a hash, and as a public page may show one."""

from __future__ import annotations

from typing import NamedTuple

from threadline.kernel.identity import former_addresses
from threadline.kernel.ids import short_hash


class KnownAddress(NamedTuple):
    """An address in the form under which it is known, of a workspace."""

    workspace: str
    address: str

    def forms(self) -> list[KnownAddress]:
        """The address itself, and the forms under which a store of an earlier version may have it."""
        return [self, *(KnownAddress(self.workspace, form) for form in former_addresses(self.address))]


def address_hash(workspace: str, address: str) -> str:
    """What rows are found under: 32 hex digits, of the same length for every address."""
    return short_hash(workspace, address)


def masked(address: str) -> str:
    """An address as its owner recognises it and nobody else learns it: a•••@e•••.com."""
    local, _, domain = address.rpartition("@")
    name, dot, end = domain.rpartition(".")
    return f"{local[:1]}•••@{(name or end)[:1]}•••{dot}{end if dot else ''}"
