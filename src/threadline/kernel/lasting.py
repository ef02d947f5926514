"""How long events count: what a capability declares of the types that it makes or reads; none is erased too soon.

What a projection carries over stays when its events go, see `threadline.kernel.opening`. What another one folds is gone
with them: a type that it makes something of for life, such as a day of a streak, may never be erased by its age; one
that counts for a time, such as a mail that a frequency cap looks back at, not before that has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from threadline.kernel.event_type import EventType
from threadline.kernel.policy import Policy
from threadline.kernel.projection import Projection
from threadline.kernel.time import DAY


class Until(NamedTuple):
    """A type counts for a time."""

    microseconds: int
    """From when it occurred."""
    why: str


@dataclass(frozen=True, slots=True)
class Lasting:
    """How long event types count for what reads them, besides what a type says of itself (`EventType.lasts`): declared
    by the reader, and found by discovery.

    Reasons end a sentence: "events of type 'points_spent' cannot be erased by age: the balance is made of them".
    """

    name: str
    """Of the capability, and of a part of it where it declares several."""
    for_life: Mapping[str, str] = field(default_factory=dict)
    """Event type -> why."""
    until: Mapping[str, Until] = field(default_factory=dict)
    until_any_but: Mapping[Until, Collection[str]] = field(default_factory=dict)
    """How long every type that anyone may say counts -> those that do not."""
    if_read: Mapping[tuple[str, ...], Mapping[str, str]] = field(default_factory=dict)
    """A projection and a name in its view -> what counts for life where a policy reads that."""
    any_but: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Why every type that anyone may say counts for life -> those that do not."""
    results: Mapping[str, str] = field(default_factory=dict)
    """Event type -> which results are counted from it for life. A rule that says so lets them become 0."""


@dataclass(frozen=True, slots=True)
class Expiring:
    """Event types that are erased by their age. Declared by users, and found by discovery."""

    name: str
    """In words, such as "retention rule 'visits'"."""
    place: str
    """File and line."""
    types: tuple[str, ...]
    days: int
    drops_results: bool = False
    """Whether results that are counted for life may go with them."""


def for_life(types: Iterable[str], why: str) -> dict[str, str]:
    """Types that count for life for one reason."""
    return dict.fromkeys(types, why)


def erased_too_soon(declared: Iterable[object]) -> Iterator[str]:
    """What is erased though it still counts, each with its place and the reason, of everything that is declared."""
    values = list(declared)
    lasting = [value for value in values if isinstance(value, Lasting)]
    reads = (read for value in values if isinstance(value, Policy) for read in value.reads)
    read = {(read.projection, *read.path[:1]) for read in reads}
    spoken_for = {value.name.partition(".")[0] for value in lasting}
    bound = [
        value
        for value in values
        if isinstance(value, Projection) and value.carries is None and value.name not in spoken_for
    ]
    ours = {value.name for value in values if isinstance(value, EventType) and value.speaker != "anyone"}
    own = {value.name: value.lasts for value in values if isinstance(value, EventType) and value.lasts}
    lasting.append(Lasting("event types", own))
    for rule in (value for value in values if isinstance(value, Expiring)):
        for type in rule.types:
            problem = _too_soon(type, rule, lasting, read, type in ours)
            if problem := problem or _not_carried(type, rule, lasting, bound):
                yield f"{rule.place}: {rule.name}: {problem}"


def _too_soon(type: str, rule: Expiring, lasting: Iterable[Lasting], read: set[tuple[str, ...]], is_ours: bool) -> str:
    longest, hint = Until(0, ""), ""
    for declared in lasting:
        reasons = dict(declared.for_life)
        for view in declared.if_read.keys() & read:
            reasons |= declared.if_read[view]
        for why, others in declared.any_but.items() if not is_ours else ():
            if type not in others:
                reasons.setdefault(type, why)
        if type in reasons:
            return f"events of type {type!r} cannot be erased by age: {reasons[type]}"
        if type in declared.results and not rule.drops_results:
            hint = f"{declared.results[type]}; write `drops_results: true` in the rule if these may become 0"
        longest = max(longest, declared.until.get(type, longest))
        for until, others in declared.until_any_but.items() if not is_ours else ():
            longest = max(longest, longest if type in others else until)
    if hint:
        return f"events of type {type!r} cannot be erased by age: {hint}"
    needed = -(-longest.microseconds // DAY)
    if rule.days >= needed:
        return ""
    return f"events of type {type!r} count for {needed} days: {longest.why}; write {needed} or more"


def _not_carried(type: str, rule: Expiring, lasting: Iterable[Lasting], bound: Iterable[Projection]) -> str:
    """Why a type cannot be erased of which nobody says anything: of what is folded of it nothing would stay."""
    if rule.drops_results and any(type in declared.results for declared in lasting):
        return ""
    name = next((projection.name for projection in bound if projection.fold_of(type) is not None), "")
    reason = f"{name!r} is folded of them, and has no sum that stays when they go"
    return f"events of type {type!r} cannot be erased by age: {reason}" if name else ""
