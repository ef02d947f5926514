"""From pieces to claims: who says what about a fact, since when and how surely; which of it a retraction voids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.foundation.events.forms import instant
from threadline.capabilities.profile.memory.definition import Derivation
from threadline.capabilities.profile.memory.fact_state import (
    CELLS,
    COUNT,
    FIRST_AT,
    STATED_AT,
    STATED_CONFIDENCE,
    STATED_ID,
    STATED_PREMISES,
    STATED_UNTIL,
    STATED_VALUE,
    STATEMENTS,
    TAIL,
    FactState,
)
from threadline.kernel.canonical import canonical_json
from threadline.kernel.fixed import SCALE, from_fixed
from threadline.kernel.time import DAY, LATEST

FactId = tuple[str, str]
"""(type, key)."""


class Claim(NamedTuple):
    """One voice's word on a fact."""

    strength: int
    """Position of its source in `SOURCES`: 0 is the strongest."""
    at: int
    id: str
    voice: str
    value: Any
    confidence: int
    """Millionths."""
    expires_at: int | None
    premises: tuple[FactId, ...]

    def lives(self, now: int) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or self.expires_at > now


def claims_reader(derivation: Derivation) -> Callable[[FactState], list[Claim]]:
    """What gives the claims in a piece of this derivation; decided once, for a person has a hundred pieces."""
    return _statements_reader(derivation) if derivation.says else _newest_reader(derivation)


def _statements_reader(derivation: Derivation) -> Callable[[FactState], list[Claim]]:
    strength, usual, expiry = derivation.strength, derivation.usual, _expiry_reader(derivation)

    def read(piece: FactState) -> list[Claim]:
        return [
            Claim(
                strength,
                statement[STATED_AT],
                statement[STATED_ID],
                voice,
                statement[STATED_VALUE],
                usual if statement[STATED_CONFIDENCE] is None else statement[STATED_CONFIDENCE],
                expiry(statement[STATED_AT], statement[STATED_UNTIL]),
                tuple(split_id(premise) for premise in statement[STATED_PREMISES] or ()),
            )
            for voice, statement in sorted(piece[STATEMENTS].items())
        ]

    return read


def _newest_reader(derivation: Derivation) -> Callable[[FactState], list[Claim]]:
    strength, usual = derivation.strength, derivation.usual
    expiry = None if derivation.expires_after is None else _expiry_reader(derivation)
    # Behind the words of the value stand confidence and expiry, where events tell them.
    dated = derivation.expires_at is not None
    unsure = derivation.confidence is not None and type(derivation.confidence) is not int
    single = derivation.value is not None
    fields = [
        (name, None if of == "last" else _field_reader(of, index), index)
        for name, of, index in derivation.cells_by_name
    ]

    def read(piece: FactState) -> list[Claim]:
        statements, tail = piece[STATEMENTS], piece[TAIL]
        at, id = tail[0], tail[1]
        value: Any = (
            statements[0]
            if single
            else {name: statements[index] if field is None else field(piece) for name, field, index in fields}
        )
        confidence = statements[-1 - dated] if unsure else None
        until = statements[-1] if dated else None
        if expiry is not None:
            until = expiry(at, until)
        return [Claim(strength, at, id, "", value, usual if confidence is None else confidence, until, ())]

    return read


def _expiry_reader(derivation: Derivation) -> Callable[[int, int | None], int | None]:
    lasting = derivation.expires_after
    if lasting is None:
        return lambda at, until: until

    def read(at: int, until: int | None) -> int | None:
        after = min(at + lasting, LATEST)
        return after if until is None else min(after, until)

    return read


def _field_reader(aggregate: str, index: int) -> Callable[[FactState], Any]:
    if (of_cell := _OF_CELLS.get(aggregate)) is not None:
        cell = CELLS + index
        return lambda piece: of_cell(piece[cell])
    return _OF_TIMES[aggregate]


def _amounts(cell: Any) -> dict[str, float]:
    return {code or "unknown": from_fixed(int(before[1])) for code, before in sorted((cell or {}).items())}


def _sum_of_amounts(cell: Any) -> float | None:
    if not cell:
        return 0.0
    # Amounts of several currencies have no sum.
    return from_fixed(int(next(iter(cell.values()))[1])) if len(cell) == 1 else None


_OF_CELLS: Mapping[str, Callable[[Any], Any]] = {
    "first": lambda cell: None if cell is None else cell[2],
    "sum": lambda cell: from_fixed(int(cell or 0)),
    "sums": _sum_of_amounts,
    "amounts": _amounts,
}


def _average_interval_days(piece: FactState) -> float | None:
    count: int = piece[COUNT]
    # One division of integers, so that the result is the float that is nearest to the truth.
    return None if count < 2 else (piece[TAIL][0] - piece[FIRST_AT]) / ((count - 1) * DAY)


_OF_TIMES: Mapping[str, Callable[[FactState], Any]] = {
    "count": lambda piece: piece[COUNT],
    "first_at": lambda piece: instant(piece[FIRST_AT]),
    "last_at": lambda piece: instant(piece[TAIL][0]),
    "average_interval_days": _average_interval_days,
}


def split_id(id: str) -> FactId:
    """Type and key of ``type/key``."""
    type, _, key = id.partition("/")
    return type, key


# --- certainty ----------------------------------------------------------------------------------


def agreed(claims: Sequence[Claim]) -> float:
    """The confidence of a value that these claims, all of one strength, agree on: 1 − Π (1 − c) over their voices.

    Each is the word of another voice, so that no voice gains by repeating itself. Rounded to four decimals.
    """
    if len(claims) == 1:
        return round(claims[0].confidence / SCALE, 4)
    doubt = 1
    for claim in claims:
        doubt *= SCALE - claim.confidence
    whole = SCALE ** len(claims)
    share: float = (whole - doubt) / whole
    return round(share, 4)


def by_value(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Claims of one fact that say the same together: the strongest value first, of equals the surest, then the newest.

    Of each voice its newest word counts, whichever derivation it was made by. Claims of different strength never stand
    together: what an agent infers makes no surer what events say. Weaker ones that agree with the first value are left
    out: they speak neither for it nor against it.
    """
    if len(claims) == 1:
        return [list(claims)]
    groups: dict[tuple[int, bytes], list[Claim]] = {}
    statements: dict[tuple[int, str], Claim] = {}
    for claim in claims:
        before = statements.setdefault((claim.strength, claim.voice), claim)
        if (claim.at, claim.id, claim.confidence) > (before.at, before.id, before.confidence):
            statements[claim.strength, claim.voice] = claim
    for claim in statements.values():
        groups.setdefault((claim.strength, canonical_json(claim.value)), []).append(claim)
    newest = {key: max((claim.at, claim.id) for claim in group) for key, group in groups.items()}
    ordered = sorted(groups, key=lambda key: newest[key], reverse=True)
    ordered.sort(key=lambda key: (key[0], -agreed(groups[key])))
    wins = ordered[0]
    return [groups[key] for key in ordered if key == wins or key[1] != wins[1]]


# --- what a retraction takes along --------------------------------------------------------------


def voided(
    claims: Mapping[FactId, list[Claim]], retracted: Mapping[FactId, int], now: int
) -> dict[FactId, tuple[int, FactId]]:
    """Of each fact: the instant up to which claims are void, and the retracted fact that is the reason.

    ``claims`` are those that the fact's own retraction, in ``retracted``, leaves. A claim that rests on a fact is void
    with it if it is no newer than what voided that fact; a fact that loses so all its claims that live takes along what
    rests on it in turn. What has expired since is lost as well: time alone gives nothing back. Facts that rest on each
    other in a circle come to the same end wherever one begins: bounds only rise.
    """
    bounds = {fact: (at, fact) for fact, at in retracted.items()}
    if not bounds:
        return bounds
    resting = {fact: listed for fact, listed in claims.items() if any(claim.premises for claim in listed)}
    risen = bool(resting)
    while risen:
        risen = False
        for fact, listed in resting.items():
            bound = _bound(listed, bounds, now)
            if bound is not None and (fact not in bounds or bound > bounds[fact]):
                bounds[fact] = bound
                risen = True
    return bounds


def _bound(claims: list[Claim], bounds: Mapping[FactId, tuple[int, FactId]], now: int) -> tuple[int, FactId] | None:
    """What voids these claims because of what they rest on; None while one of them stands, and if nothing does."""
    reasons = []
    for claim in claims:
        reason = cause_of(claim, bounds)
        if reason is not None:
            reasons.append(reason)
        elif claim.lives(now):
            return None
    return max(reasons, default=None)


def cause_of(claim: Claim, bounds: Mapping[FactId, tuple[int, FactId]]) -> tuple[int, FactId] | None:
    """What voids a claim because of what it rests on; None if nothing does."""
    voids = [bounds[premise] for premise in claim.premises if premise in bounds and claim.at <= bounds[premise][0]]
    return max(voids, default=None)
