"""A capability: a package whose modules declare things, under one name, and on unless the settings switch it off.

The plug-in, extension or module of Threadline. What ships goes through the same door as what others write: its
projections, policies, operations, screens and event types are values in its modules, and nothing registers itself.

    >>> from threadline.kernel.capability import Capability
    >>> CHATS = Capability("chats", "shop_chats", needs=frozenset({"points"}))
    >>> CHATS.is_core
    False

It is in force by an entry point of the group ``threadline.capabilities``, the setting ``capabilities``, or
``threadline.open(…, capabilities=[CHATS])``. Options: ``needs`` (other capabilities), ``is_core``. The laws to try it
by are `threadline.testing.capability_laws`; docs/how-to-add-a-capability.md makes one from nothing.
"""

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
