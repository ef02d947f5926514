"""What the rules capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.rules.loading import read_book
from threadline.capabilities.rules.policy import rules_policy


def declare(definitions: Definitions) -> list[Any]:
    """The policy, always: rules may come at any time. As long as there are none, no event costs anything."""
    book = read_book(definitions)
    definitions.refuse()
    return [rules_policy(book)]
