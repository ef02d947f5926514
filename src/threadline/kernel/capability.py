"""A capability: a package whose modules declare things, under one name, and on unless the settings switch it off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capability:
    """What ships is declared so, one for each folder of a wing of `threadline.capabilities`; and what others write:

        CHATS = Capability("chats", "shop.chats")

    It is in force where it is given to `threadline.open`, named by the setting ``capabilities``, or installed by a
    distribution with an entry point of the group `threadline.capabilities`.
    """

    name: str
    """What the setting switches it off by."""
    package: str
    """The module, or the package with all its modules, that declares its parts: projections, policies, operations …"""
    needs: frozenset[str] = frozenset()
    """Names of the capabilities without which it cannot do what it promises."""
    is_core: bool = False
    """Whether Threadline itself relies on it, so that it cannot be switched off."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name != self.name.lower():
            raise ValueError(f"capability {self.name!r}: a name has lower-case letters, digits and _")
