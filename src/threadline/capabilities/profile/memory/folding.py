"""Folding: what an event adds to the pieces of the facts that it makes.

The state is a dict of parts:

    "<code>"  of a derivation that makes one fact its piece, see `pieces`; of one that makes many {key: piece}
    "!"       {type/key: retractions} of the facts that were taken back
    "~"       {code: when pieces were last sorted out} of the derivations with facts that expire, see `sorting`

Codes stand for derivations. A part that holds nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from threadline.capabilities.profile.features.cells import add_money, add_units
from threadline.capabilities.profile.memory.definition import CERTAINTY, TYPES, USER_DECLARED
from threadline.capabilities.profile.memory.derivation import FactDerivation
from threadline.capabilities.profile.memory.events import FACT_RESTORED
from threadline.capabilities.profile.memory.eviction import sort_out
from threadline.capabilities.profile.memory.fact_state import (
    CELLS,
    COUNT,
    FIRST_AT,
    RESTORED,
    RETRACTED,
    RETRACTED_FACTS,
    STATED_AT,
    STATED_ID,
    STATEMENTS,
    TAIL,
    FactState,
    FactStates,
    Retractions,
    State,
    hash_of,
)
from threadline.capabilities.profile.memory.paths import SURELY_SHORT, Element, keep
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Recorded
from threadline.kernel.fixed import to_fixed
from threadline.kernel.limits import FACT_KEY_LENGTH_MAX, FACT_RETRACTIONS_MAX, FACT_VOICES_MAX, FACTS_RETRACTED_MAX
from threadline.kernel.projection import Fold
from threadline.kernel.time import parse_time

Add = Callable[[FactStates, Recorded, str, Element, bool], bool]
"""Adds an event to the piece of this name; answers whether the event makes that fact. The last argument: whether the
event has added to it before, by another of its lines."""


def fold_of(maker: FactDerivation, *, sorting: bool = True) -> Fold:
    """What adds an event to the pieces of the facts that it makes. ``sorting``: whether too many facts that expire are
    sorted out."""
    add = _adder_of_voices(maker) if maker.derivation.says else _adder_of_newest(maker)
    return _fold_of_many(maker, add, sorting) if maker.many else _fold_of_one(maker, add)


def fold_of_all(listed: Sequence[FactDerivation]) -> Fold:
    """The fold of all derivations that are at work on one type of events."""
    folds = [fold_of(maker) for maker in listed]
    if len(folds) == 1:
        return folds[0]

    def fold(state: State, recorded: Recorded) -> State | None:
        touched = None
        for fold in folds:
            if fold(state, recorded) is not None:
                touched = state
        return touched

    return fold


def _fold_of_one(maker: FactDerivation, add: Add) -> Fold:
    code, test = maker.code, maker.where.test if maker.where else None
    recalls = maker.recalled is not None

    def fold(state: State, recorded: Recorded) -> State | None:
        # The piece of the one fact stands in the state itself.
        event = recorded.event
        if test is not None and not test(event):
            return None
        if recalls and maker.part(event.properties, event) is None:
            return None
        return state if add(state, recorded, code, event.properties, False) else None

    return fold


def _fold_of_many(maker: FactDerivation, add: Add, sorting: bool) -> Fold:
    code, test, room = maker.code, maker.where.test if maker.where else None, maker.room if sorting else 0

    def fold(state: State, recorded: Recorded) -> State | None:
        event = recorded.event
        if test is not None and not test(event):
            return None
        made = maker.made(event)
        if not made:
            return None
        pieces: FactStates = state.get(code, {})
        # Several lines of one event that make the same fact are one event: all add to the sums, the first is the word.
        seen: set[str] = set()
        for part, element in made:
            if add(pieces, recorded, part, element, part in seen):
                seen.add(part)
        if room and len(pieces) > room:
            sort_out(maker, state, pieces, event.occurred_at)
        if pieces:
            state[code] = pieces
        else:
            state.pop(code, None)
        return state if seen else None

    return fold


def facts_made(maker: FactDerivation, recorded: Recorded) -> Iterator[tuple[str, str]]:
    """Type and key of each fact that an event makes, whether or not it is kept."""
    state: State = {}
    fold_of(maker, sorting=False)(state, recorded)
    if state:
        yield from map(maker.fact, maker.pieces(state[maker.code]))


def _adder_of_newest(maker: FactDerivation) -> Add:
    """For pieces that keep the newest words of all sources together."""
    lasts, readers, length = maker.lasts, maker.cells, maker.tail
    is_counted, is_more_added, most = maker.counted, maker.added, len(maker.lasts)

    def add(pieces: FactStates, recorded: Recorded, part: str, element: Element, again: bool) -> bool:
        event = recorded.event
        statements = []
        for name, otherwise in lasts:
            value = element.get(name)
            if value is None and otherwise is not None:
                value = otherwise(element, event)
            if value is not None and (value.__class__ is not str or len(value) > SURELY_SHORT):
                value = keep(value)
            statements.append(value)
        cells = [(aggregate, reader(element, event)) for aggregate, reader in readers] if readers else ()
        if not is_counted and statements.count(None) == most and all(value is None for _, value in cells):
            return False
        at, id = event.occurred_at, recorded.id
        if is_more_added and not again:
            _add_further(maker, statements, element, event)
        piece = pieces.get(part)
        if piece is None:
            if not again:
                opened = [_open_cell(aggregate, at, id, value) for aggregate, value in cells]
                _keep(maker, pieces, part, [1, at, [at, id], statements, *opened])
        elif again:
            _add_to_cells(piece, at, id, [cell if cell[0] == "sum" else (cell[0], None) for cell in cells])
        else:
            if _note_event(piece, at, id, length):
                piece[STATEMENTS] = statements
            if cells:
                _add_to_cells(piece, at, id, cells)
        return True

    return add


def _add_further(maker: FactDerivation, statements: list[Any], element: Element, event: Event) -> None:
    """Put what stands behind the last fields: constants, confidence and expiry."""
    statements += maker.constants
    if maker.confidence is not None:
        statements.append(_confidence(maker, element, event))
    if maker.expires_at is not None:
        statements.append(_instant(maker.expires_at(element, event)))


def _adder_of_voices(maker: FactDerivation) -> Add:
    """For pieces that keep sources apart."""
    [(name, otherwise)] = maker.lasts

    def add(pieces: FactStates, recorded: Recorded, part: str, element: Element, again: bool) -> bool:
        event = recorded.event
        at, id = event.occurred_at, recorded.id
        value = element.get(name)
        value = keep(otherwise(element, event) if value is None and otherwise is not None else value)
        if value is None or again:
            return value is not None
        confidence = None if maker.confidence is None else _confidence(maker, element, event)
        until = None if maker.expires_at is None else _instant(maker.expires_at(element, event))
        premises = None if maker.derived_from is None else _premises(maker.derived_from(element, event))
        # A person is one voice about themselves, whichever application recorded it.
        voice = "" if maker.derivation.source == USER_DECLARED else event.source
        statement = [at, id, value, confidence, until, premises]
        piece = pieces.get(part)
        if piece is None:
            _keep(maker, pieces, part, [1, at, [at, id], {voice: statement}])
        else:
            _note_event(piece, at, id, maker.tail)
            _add_statement(piece[STATEMENTS], voice, statement)
        return True

    return add


def _confidence(maker: FactDerivation, element: Element, event: Event) -> int | None:
    assert maker.confidence is not None
    confidence_given = to_fixed(maker.confidence(element, event))
    return None if confidence_given is None else min(max(confidence_given, 0), CERTAINTY[maker.derivation.source][1])


def _instant(value: Any) -> int | None:
    if type(value) is not str:
        return None
    try:
        return parse_time(value)
    except InvalidValue:
        return None


_PREMISES_MAX = 8


def _premises(value: Any) -> list[str] | None:
    """Ids of the facts that one rests on: the first few of a list, or a single text."""
    listed = value if type(value) is list else [value]
    premises = [premise for premise in listed if type(premise) is str and len(premise) <= FACT_KEY_LENGTH_MAX + 16]
    return premises[:_PREMISES_MAX] or None


# --- one more event in a piece -------------------------------------------------------------------


def _keep(maker: FactDerivation, pieces: FactStates, part: str, piece: FactState) -> None:
    """Put a new piece in its place. Where there are too many, those with the smallest hashes stay.

    Whatever is left out has ``most`` smaller hashes before it and can never come back, so no order of arrival shows.
    """
    pieces[part] = piece
    if maker.many and not maker.room and len(pieces) > maker.derivation.most:
        del pieces[max(pieces, key=hash_of)]


def _note_event(piece: FactState, at: int, id: str, length: int) -> bool:
    """Count one more event, with ``length`` places for the newest ones; answers whether it is the newest so far."""
    piece[COUNT] += 1
    tail = piece[TAIL]
    if at > tail[0] or (at == tail[0] and id > tail[1]):
        tail[0:0] = (at, id)
        del tail[length:]
        return True
    piece[FIRST_AT] = min(piece[FIRST_AT], at)
    for index in range(2, length, 2):
        if index == len(tail) or (at, id) > (tail[index], tail[index + 1]):
            tail[index:index] = (at, id)
            del tail[length:]
            break
    return False


def _add_statement(statements: dict[str, list[Any]], voice: str, statement: list[Any]) -> None:
    """Keep the newest word of a voice. A voice that is pushed out has smaller names before it and never comes back."""
    before = statements.get(voice)
    if before is not None:
        if (statement[STATED_AT], statement[STATED_ID]) > (before[STATED_AT], before[STATED_ID]):
            statements[voice] = statement
        return
    statements[voice] = statement
    if len(statements) > FACT_VOICES_MAX:
        del statements[max(statements)]


def _add_to_cells(piece: FactState, at: int, id: str, cells: Iterable[tuple[str, Any]]) -> None:
    for index, (aggregate, value) in enumerate(cells, CELLS):
        piece[index] = _add_to_cell(piece[index], aggregate, at, id, value)


def _open_cell(aggregate: str, at: int, id: str, value: Any) -> Any:
    """The cell of one event. ``value`` is None, or a value (first), units (sum), or units with a currency."""
    if value is None:
        return None
    if aggregate == "first":
        return [at, id, value]
    return {value[1]: [1, value[0]]} if type(value) is tuple else value


def _add_to_cell(cell: Any, aggregate: str, at: int, id: str, value: Any) -> Any:
    """The cell with one more event in it."""
    if value is None:
        return cell
    if cell is None:
        return _open_cell(aggregate, at, id, value)
    if aggregate == "first":
        return [at, id, value] if (at, id) < (cell[0], cell[1]) else cell
    return add_money(cell, value[0], value[1]) if type(value) is tuple else add_units(cell, value)


# --- retractions --------------------------------------------------------------------------------


def fold_retraction(state: State, recorded: Recorded) -> State | None:
    """Note a retraction, or its undoing, if it names a fact."""
    properties = recorded.event.properties
    type_, key = properties.get("type"), properties.get("key")
    if type_ not in TYPES or type(key) is not str or not 0 < len(key) <= FACT_KEY_LENGTH_MAX:
        return None
    at: Any = recorded.event.occurred_at
    id: Any = recorded.id
    bit = RETRACTED
    if recorded.event.type == FACT_RESTORED:
        at, id, bit = properties.get("retracted_at"), properties.get("retraction"), RESTORED
        if type(at) is not int or not -(2**63) <= at < 2**63 or type(id) is not str or len(id) != len(recorded.id):
            return None
    facts: dict[str, Retractions] = state.setdefault(RETRACTED_FACTS, {})
    _add_retraction(facts.setdefault(f"{type_}/{key}", []), at, id, bit, FACT_RETRACTIONS_MAX)
    if len(facts) > FACTS_RETRACTED_MAX:
        del facts[max(facts, key=hash_of)]
    return state


def _add_retraction(retractions: Retractions, at: int, id: str, bit: int, most: int) -> None:
    """Note a retraction, or its undoing; only the newest stay, in whatever order they arrive."""
    for retraction in retractions:
        if retraction[0] == at and retraction[1] == id:
            retraction[2] |= bit
            return
    retractions.append([at, id, bit])
    retractions.sort(reverse=True)
    del retractions[most:]
