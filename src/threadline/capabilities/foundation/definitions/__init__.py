"""Definitions: the YAML files in which users declare what they want, parsed once for all capabilities.

What it promises: a capability declares each kind of definition once, and from that come the value, its problems with
file and line, and the JSON Schema for editors; a section that nobody reads is refused, with the nearest known name.
"""

from threadline.capabilities.foundation.definitions.document import PROBLEMS_MAX, Document
from threadline.capabilities.foundation.definitions.files import Definitions
from threadline.capabilities.foundation.definitions.plain import Noted, Part, Place, Plain, shown_place
from threadline.capabilities.foundation.definitions.problem import Problem
from threadline.capabilities.foundation.definitions.schema import schema
from threadline.kernel.capability import Capability

CAPABILITY = Capability("definitions", __name__, is_core=True)

__all__ = [
    "CAPABILITY",
    "PROBLEMS_MAX",
    "Definitions",
    "Document",
    "Noted",
    "Part",
    "Place",
    "Plain",
    "Problem",
    "schema",
    "shown_place",
]
