"""What is in definitions and hardly meant: a name that nobody has used, a rule that nothing asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain

from threadline.capabilities.foundation.definitions import Definitions, Problem
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.names import EVENT_TYPE, Mention, NameKind
from threadline.kernel.ports import Catalogue
from threadline.kernel.suggestion import nearest
from threadline.wire.segment import CALLS, SEMANTIC

LIKENESS = 0.8
"""Two names that differ by a letter or an ending, and not two that share a word."""
NEAR = 0.65
"""Two names of which one may stand for the other, once it is known that nobody has used the first."""

Sent = Callable[[Mapping[NameKind, Collection[str]]], Mapping[str, frozenset[str] | None]]
"""Those of some names that a log has, by kind; None: it cannot tell."""


def warnings(made: Catalogue, definitions: Definitions, sent: Sent | None) -> list[Problem]:
    """The warnings of definitions of which a catalogue was made, in the order of the files."""
    kinds = [kind for kind in made.names.kinds.values() if kind.is_free]
    known = {kind: _known(kind, made, definitions) for kind in kinds}
    unknown = {kind: _unknown(kind, definitions.mentions, known[kind]) for kind in kinds}
    met = {} if sent is None else sent(unknown)
    named = chain.from_iterable(
        _warned(kind, definitions.mentions, known[kind], unknown[kind], met.get(kind.name)) for kind in kinds
    )
    columns = {f"{mention.place}: {text}": mention.column for mention, text in named}
    return definitions.in_order([*definitions.warned, *columns], columns)


def _known(kind: NameKind, made: Catalogue, definitions: Definitions) -> frozenset[str]:
    """The names of a kind that are declared, or made by something that is."""
    known = definitions.known_names[kind.name].union(kind.of_types(made.event_types), kind.declared(definitions) or ())
    if kind.name == EVENT_TYPE:
        known.update(CALLS, chain.from_iterable(policy.emits or () for policy in made.policies))
    return frozenset(known)


def _unknown(kind: NameKind, mentions: Collection[Mention], known: Collection[str]) -> frozenset[str]:
    return frozenset(
        mention.name
        for mention in mentions
        if mention.kind == kind.name and not mention.name.startswith(SYSTEM_PREFIX)
        if not kind.is_among(mention.name, known)
    )


def _warned(
    kind: NameKind,
    mentions: Collection[Mention],
    known: Collection[str],
    unknown: Collection[str],
    sent: Collection[str] | None,
) -> Iterator[tuple[Mention, str]]:
    """A warning for each place that has an unknown name which is not among those ``sent``.

    ``sent`` is None where that cannot be told. Then any name may be right, and one is suspicious only where it is
    written once and another is spelled almost alike. Names of other vocabularies stand for the type that they are
    recorded as.
    """
    counts = Counter(mention.name for mention in mentions if mention.kind == kind.name)
    met = frozenset(sent or ())
    sensible = {*known, *met, *(name for name in counts if name not in unknown)}
    synonyms = SEMANTIC if kind.name == EVENT_TYPE else {}
    for mention in mentions:
        name = mention.name
        if mention.kind != kind.name or name not in unknown or name in met:
            continue
        alike = sensible | {other for other, count in counts.items() if count > 1 and other != name}
        near = synonyms.get(name) or nearest(name, alike, LIKENESS if sent is None else NEAR)
        if sent is not None or (near is not None and (counts[name] == 1 or name in synonyms)):
            reason = kind.never if sent is not None else f"nothing else knows the {kind.name}"
            hint = f"; did you mean {near!r}?" if near is not None else ""
            yield mention, f"{mention.what}: {reason} {name!r}{hint}"
