"""Memory: facts about one person, derived from events or told, each with its source, confidence and lineage.

What it promises: a fact is declared, not programmed; the same events in any order and number of tellings make the same
facts; "last" is last by occurred time and aggregates are exact; an expired or retracted fact is never served, to the
microsecond; a weaker source never replaces a stronger one, what it says stands beside as a conflict; repetition by one
source makes nothing more certain; a retraction takes along what was derived from the fact, and can be undone.
"""

from threadline.capabilities.profile.memory.definition import (
    SOURCES,
    TYPES,
    Derivation,
    DerivationSet,
    load_derivations,
    read_derivations,
)
from threadline.capabilities.profile.memory.variables import resolve
from threadline.kernel.capability import Capability

CAPABILITY = Capability("memory", __name__)

__all__ = [
    "CAPABILITY",
    "SOURCES",
    "TYPES",
    "Derivation",
    "DerivationSet",
    "load_derivations",
    "read_derivations",
    "resolve",
]
