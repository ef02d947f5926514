"""What is in definitions and hardly meant: a type that nobody sends, a rule that nothing asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain

from threadline.capabilities.foundation.definitions import Definitions, Problem
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.ports import Catalogue
from threadline.kernel.suggestion import nearest
from threadline.wire.segment_event import CALLS
from threadline.wire.semantic import SEMANTIC

LIKENESS = 0.8
"""Two names that differ by a letter or an ending, and not two that share a word."""


def unknown_types(definitions: Definitions, known: Collection[str]) -> frozenset[str]:
    """The types that definitions name and that are neither known nor made by something declared."""
    named = {named_type.type for named_type in definitions.named_types if not named_type.type.startswith(SYSTEM_PREFIX)}
    return frozenset(named - definitions.known_types.union(known))


def type_warnings(
    definitions: Definitions,
    known: Collection[str],
    sent: Collection[str] | None,
    synonyms: Mapping[str, str],
) -> Iterator[str]:
    """A warning for each place that names an unknown type which is not among those ``sent``.

    ``sent`` is None where that cannot be told. Then any name may be right, and a type is suspicious only where it is
    named once and another type is spelled almost alike. ``synonyms``: names of other vocabularies -> the type that they
    are recorded as.
    """
    unknown = unknown_types(definitions, known) - frozenset(sent or ())
    counts = Counter(named_type.type for named_type in definitions.named_types)
    sensible = {*known, *definitions.known_types, *(sent or ()), *(type for type in counts if type not in unknown)}
    for type, place, what in definitions.named_types:
        if type not in unknown:
            continue
        alike = sensible | {other for other, count in counts.items() if count > 1 and other != type}
        near = synonyms.get(type) or nearest(type, alike, LIKENESS)
        if sent is not None or (near is not None and (counts[type] == 1 or type in synonyms)):
            reason = "nobody has ever sent" if sent is not None else "nothing else knows the event type"
            hint = f"; did you mean {near!r}?" if near is not None else ""
            yield f"{place}: {what}: {reason} {type!r}{hint}"


Sent = Callable[[Collection[str]], frozenset[str] | None]
"""Those of some event types that a log has; None: it cannot tell."""


def warnings(made: Catalogue, definitions: Definitions, sent: Sent | None) -> list[Problem]:
    """The warnings of definitions of which a catalogue was made, in the order of the files."""
    emitted = chain.from_iterable(policy.emits or () for policy in made.policies)
    known = {*made.event_types.names, *CALLS, *emitted}
    seen = None if sent is None else sent(unknown_types(definitions, known))
    return definitions.in_order([*definitions.warned, *type_warnings(definitions, known, seen, SEMANTIC)])
