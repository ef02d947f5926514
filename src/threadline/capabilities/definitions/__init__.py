"""Definitions: the YAML files in which users declare what they want, parsed once for all capabilities.

What it promises: every node knows its file and line; each capability reads the top-level sections that are its own and
says what is wrong where it stands; a section that nobody reads is told as unknown, with the nearest name that is known.
"""

from threadline.capabilities.definitions.document import PROBLEMS_MAX, Document
from threadline.capabilities.definitions.files import Definitions
from threadline.capabilities.definitions.plain import Noted, Part, Place, Plain, shown_place
from threadline.capabilities.definitions.schema import schema

__all__ = [
    "PROBLEMS_MAX",
    "Definitions",
    "Document",
    "Noted",
    "Part",
    "Place",
    "Plain",
    "schema",
    "shown_place",
]
