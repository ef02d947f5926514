"""What the store has of a person about mail that they want or do not want."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.capabilities.reach.consent.events import (
    SUPPRESSION,
    WORDS,
)
from threadline.capabilities.reach.consent.remaining import REMAINING_TABLE
from threadline.capabilities.reach.consent.rows import STATEMENTS_TABLE, SUPPRESSION_TABLE, newest_suppression
from threadline.kernel.address import normal_address
from threadline.kernel.personal import PersonFile, StoreTable, Subject, joined, shown_events, shown_views


def _suppressed(subject: Subject) -> Iterator[dict[str, Any]]:
    """What holds for the person's addresses, whoever had them when it was said."""
    for identifier in sorted(subject.person.identifiers.values()):
        if identifier.kind == "email":
            address = normal_address(identifier.value) or identifier.value
            newest = newest_suppression(subject.engine.store, subject.workspace, address)
            if newest is not None:
                yield {"address": identifier.value, "suppression": msgspec.to_builtins(newest)}


STATEMENTS = StoreTable(STATEMENTS_TABLE, "event_rows", shown_in="consent")
SUPPRESSIONS_TABLE = StoreTable(SUPPRESSION_TABLE, "event_rows", shown_in="consent")
REMAINING = StoreTable(
    REMAINING_TABLE, "nobody", why="addresses of people who were erased, as salted hashes: they get no mail"
)
CONSENT_FILE = PersonFile(
    "consent",
    "What you have agreed to",
    "Which mail you want and which you do not, when you said so, and addresses to which nothing is sent.",
    joined(shown_views("consent", "suppression", "privacy"), _suppressed, shown_events(*WORDS, *SUPPRESSION)),
    ("consent", "suppression", "privacy"),
)
