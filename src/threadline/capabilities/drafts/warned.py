"""What is in definitions and hardly meant: a type that nobody sends, a rule that nothing asks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain

from threadline.capabilities.definitions import Definitions, Problem
from threadline.capabilities.definitions.unsent_types import type_warnings, unknown_types
from threadline.capabilities.events.events import CATALOGUE as EVENT_TYPES
from threadline.capabilities.rules.actions import RESERVED
from threadline.capabilities.schemas.definition import shipped_types
from threadline.kernel.ports import Catalogue
from threadline.wire.segment_event import CALLS
from threadline.wire.semantic import SEMANTIC

Sent = Callable[[Collection[str]], frozenset[str] | None]
"""Those of some event types that a log has; None: it cannot tell."""


def warnings(made: Catalogue, definitions: Definitions, sent: Sent | None) -> list[Problem]:
    """The warnings of definitions of which a catalogue was made, in the order of the files."""
    emitted = chain.from_iterable(policy.emits or () for policy in made.policies)
    known = {*EVENT_TYPES, *CALLS, *shipped_types(), *made.requirements, *RESERVED, *emitted}
    seen = None if sent is None else sent(unknown_types(definitions, known))
    return definitions.in_order([*definitions.warnings, *type_warnings(definitions, known, seen, SEMANTIC)])
