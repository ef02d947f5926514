"""From one event to the pieces of a person's facts: which facts it makes, and what it adds to each.

The state is a dict of parts, so that an event unpacks only what it touches:

    "<code>"  of a derivation that makes one fact its piece, see `pieces`; of one that makes many {key: piece}
    "!"       {type/key: retractions} of the facts that were taken back
    "~"       {code: when pieces were last sorted out} of the derivations with facts that expire, see `sorting`

Codes stand for derivations. The parts that are dicts are packed again as soon as an event is folded into them: what it
did not touch is not worth unpacking for the next one either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from threadline.capabilities.features.values import matches, read_currency
from threadline.capabilities.memory.claims import claims_reader
from threadline.capabilities.memory.definition import (
    CERTAINTY,
    COUNTED,
    TYPES,
    USER_DECLARED,
    Derivation,
    Feed,
    Field,
)
from threadline.capabilities.memory.events import FACT_RESTORED
from threadline.capabilities.memory.parts import RETRACTED_FACTS, Pieces, State, close, hash_of, opened, piece_of
from threadline.capabilities.memory.paths import Element, Getter, Places, keep, renderer
from threadline.capabilities.memory.pieces import (
    CELLS,
    RESTORED,
    RETRACTED,
    WORDS,
    Piece,
    add_retraction,
    add_to_cell,
    add_word,
    note_event,
    open_cell,
)
from threadline.capabilities.memory.sorting import room_for, sort_out
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Recorded
from threadline.kernel.fixed import SCALE, to_fixed
from threadline.kernel.limits import (
    FACT_ENTRIES_MAX,
    FACT_EVENTS_MAX,
    FACT_KEY_LENGTH_MAX,
    FACT_RETRACTIONS_MAX,
    FACTS_RETRACTED_MAX,
)
from threadline.kernel.time import parse_time


class Maker:
    """One derivation at work on events of one type."""

    def __init__(self, derivation: Derivation, feed: Feed, code: str) -> None:
        self.derivation = derivation
        self.code = code
        self.claims = claims_reader(derivation)
        """What a piece says."""
        first = derivation.key[0]
        self._beginning = first if isinstance(first, str) else ""
        rest = derivation.key[1:] if self._beginning else derivation.key
        self._key = renderer(rest, FACT_KEY_LENGTH_MAX - len(self._beginning)) if rest else None
        fixed = derivation.type[0]
        self._fixed_type = fixed if isinstance(fixed, str) else ""
        self._type = None if self._fixed_type else renderer(derivation.type)
        self.many = self._key is not None
        # Of many facts one id each: they are what makes a person's state large.
        self.tail = 2 if self.many and not derivation.says else 2 * FACT_EVENTS_MAX
        expires = derivation.expires_after is not None or derivation.expires_at is not None
        self.room = room_for(derivation.most) if self.many and expires else 0
        """How many pieces of facts that expire are kept until they are sorted out; 0 where none expires."""
        self.where = feed.where
        self._each = None if derivation.each is None else derivation.each.getter()
        self._otherwise = [(name, places.getter()) for name, places in derivation.otherwise]
        lasts = [field.of for field in derivation.fields if field.aggregate == "last"]
        read = lasts if derivation.value is None else [derivation.value]
        self.lasts = [places.getter() for places in read if places is not None]
        constants = dict(feed.constants)
        self.constants = [constants.get(name) for name in derivation.constants]
        self.cells = [(f.aggregate, _reader(f)) for f in derivation.fields if f.aggregate in ("first", "sum")]
        # Where the key says which thing it is, that it happened is worth counting whatever else is told of it.
        counts = self.many and any(field.aggregate in COUNTED for field in derivation.fields)
        self.counted = counts or (not self.lasts and not self.cells)
        self.confidence = derivation.confidence.getter() if isinstance(derivation.confidence, Places) else None
        self.expires_at = _getter(derivation.expires_at)
        self.added = bool(self.constants) or self.confidence is not None or self.expires_at is not None
        self.recalled = _getter(derivation.recalled)
        self.derived_from = _getter(derivation.derived_from)

    def part(self, element: Element, event: Event) -> str | None:
        """What tells the piece of the fact made of this from others of the derivation; None where it makes none."""
        part = "" if self._key is None else self._key(element, event)
        if part is None:
            return None
        if self._type is not None:
            type = self._type(element, event)
            if type not in TYPES:
                return None
            part = f"{type}/{part}"
        if self.recalled is not None and _names(self.recalled(element, event), "/".join(self.fact(part))):
            return None
        return part

    def pieces(self, part: Any) -> Pieces:
        """The pieces in its part of a state, by what tells them apart."""
        return part if self.many else {"": part}

    def fact(self, part: str) -> tuple[str, str]:
        """Type and key of the fact whose piece has this name."""
        if self._type is None:
            return self._fixed_type, self._beginning + part
        type, _, rest = part.partition("/")
        return type, self._beginning + rest

    def facts(self, recorded: Recorded) -> Iterator[tuple[str, str]]:
        """Type and key of each fact that an event makes, whether or not it is kept."""
        state: State = {}
        fold_maker(self, state, recorded, sorting=False)
        if state:
            yield from map(self.fact, self.pieces(state[self.code]))

    def made(self, event: Event) -> list[tuple[str, Element]]:
        """What tells apart the pieces of the facts that an event makes, and what each is made of."""
        elements = (event.properties,) if self.derivation.each is None else self.elements(event)
        return [(part, element) for element in elements if (part := self.part(element, event)) is not None]

    def elements(self, event: Event) -> Iterator[Element]:
        """What the facts of an event are made of, one by one."""
        if self._each is None:
            yield event.properties
            return
        listed = self._each(event.properties, event)
        if type(listed) is dict and listed:
            for number, (key, value) in enumerate(listed.items()):
                if number == FACT_ENTRIES_MAX:
                    break
                yield {"key": key, "value": value}
        elif type(listed) is list and listed:
            for entry in listed[:FACT_ENTRIES_MAX]:
                yield entry if type(entry) is dict else {"value": entry}
        elif self._otherwise:
            yield {name: getter(event.properties, event) for name, getter in self._otherwise}


def _getter(places: Places | None) -> Getter | None:
    return None if places is None else places.getter()


def _names(recalled: Any, id: str) -> bool:
    """Whether a list of recalled facts, or the one text in its place, names this one; true stands for all."""
    return recalled is True or recalled == id or (type(recalled) is list and id in recalled)


def _reader(field: Field) -> Callable[[Element, Event], Any]:
    """What a field with a cell takes from an event: a value, units, or units with a currency; None for nothing."""
    assert field.of is not None
    of = field.of.getter()
    if field.aggregate == "first":
        return lambda element, event: keep(of(element, event))
    times, currency = _getter(field.times), _getter(field.currency)

    def units(element: Element, event: Event) -> Any:
        amount = to_fixed(of(element, event))
        if amount is not None and times is not None:
            factor = times(element, event)
            amount = amount if factor is None else _product(amount, to_fixed(factor))
        if amount is None or currency is None:
            return amount
        return amount, read_currency(currency(element, event))

    return units


def _product(amount: int, factor: int | None) -> int | None:
    """Both in units of a millionth; half a unit is rounded to even, as `to_fixed` does. None for what is too large."""
    if factor is None:
        return None
    whole, rest = divmod(amount * factor, SCALE)
    product = whole + (2 * rest > SCALE or (2 * rest == SCALE and whole % 2 == 1))
    return product if -(2**63) < product < 2**63 else None


# --- folding ------------------------------------------------------------------------------------


def fold_maker(maker: Maker, state: State, recorded: Recorded, packed: bool = False, sorting: bool = True) -> None:
    """Add an event to the pieces of the facts that it makes. ``packed``: parts may be met, and are left, packed.

    ``sorting``: whether too many facts that expire are sorted out.
    """
    event = recorded.event
    if maker.where and not matches(event, maker.where):
        return
    add = _add_said if maker.derivation.says else _add_made
    if not maker.many:
        # The piece of its one fact stands in the state itself.
        if maker.recalled is None or maker.part(event.properties, event) is not None:
            add(maker, state, recorded, maker.code, event.properties, False)
        return
    made = maker.made(event)
    if not made:
        return
    pieces = opened(state, maker.code)
    # Several lines of one event that make the same fact are one event: all add to the sums, the first is the word.
    seen: set[str] = set()
    for part, element in made:
        if add(maker, pieces, recorded, part, element, part in seen):
            seen.add(part)
    if sorting and maker.room and len(pieces) > maker.room:
        sort_out(maker, state, pieces, event.occurred_at)
    close(state, maker.code, pieces, packed)


def _add_made(maker: Maker, pieces: Pieces, recorded: Recorded, part: str, element: Element, again: bool) -> bool:
    """Add to a piece that keeps the newest words of all sources together; answers whether the event had any."""
    event = recorded.event
    at, id = event.occurred_at, recorded.id
    words = [keep(getter(element, event)) for getter in maker.lasts]
    cells = [(aggregate, reader(element, event)) for aggregate, reader in maker.cells]
    if not maker.counted and words.count(None) == len(words) and all(found is None for _, found in cells):
        return False
    if maker.added and not again:
        words += maker.constants
        if maker.confidence is not None:
            words.append(_confidence(maker, element, event))
        if maker.expires_at is not None:
            words.append(_instant(maker.expires_at(element, event)))
    piece = piece_of(pieces, part)
    if piece is None:
        if not again:
            opened = [open_cell(aggregate, at, id, found) for aggregate, found in cells]
            _keep(maker, pieces, part, [1, at, [at, id], words, *opened])
    elif again:
        _add_to_cells(piece, at, id, [each if each[0] == "sum" else (each[0], None) for each in cells])
    else:
        if note_event(piece, at, id, maker.tail):
            piece[WORDS] = words
        if cells:
            _add_to_cells(piece, at, id, cells)
    return True


def _add_to_cells(piece: Piece, at: int, id: str, cells: list[tuple[str, Any]]) -> None:
    for place, (aggregate, found) in enumerate(cells, CELLS):
        piece[place] = add_to_cell(piece[place], aggregate, at, id, found)


def _add_said(maker: Maker, pieces: Pieces, recorded: Recorded, part: str, element: Element, again: bool) -> bool:
    """Add to a piece that keeps sources apart; answers whether the event says anything."""
    event = recorded.event
    at, id = event.occurred_at, recorded.id
    value = keep(maker.lasts[0](element, event))
    if value is None or again:
        return value is not None
    confidence = None if maker.confidence is None else _confidence(maker, element, event)
    until = None if maker.expires_at is None else _instant(maker.expires_at(element, event))
    premises = None if maker.derived_from is None else _premises(maker.derived_from(element, event))
    # What a person says of themselves is one voice, whichever application it was said to.
    voice = "" if maker.derivation.source == USER_DECLARED else event.source
    word = [at, id, value, confidence, until, premises]
    piece = piece_of(pieces, part)
    if piece is None:
        _keep(maker, pieces, part, [1, at, [at, id], {voice: word}])
    else:
        note_event(piece, at, id, maker.tail)
        add_word(piece[WORDS], voice, word)
    return True


def _confidence(maker: Maker, element: Element, event: Event) -> int | None:
    assert maker.confidence is not None
    told = to_fixed(maker.confidence(element, event))
    return None if told is None else min(max(told, 0), CERTAINTY[maker.derivation.source][1])


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


def _keep(maker: Maker, pieces: Pieces, part: str, piece: Piece) -> None:
    """Put a new piece in its place. Where there are too many, those with the smallest hashes stay.

    Whatever is left out has ``most`` smaller hashes before it and can never come back, so no order of arrival shows.
    """
    pieces[part] = piece
    if maker.many and not maker.room and len(pieces) > maker.derivation.most:
        del pieces[max(pieces, key=hash_of)]


def fold_retraction(state: State, recorded: Recorded, packed: bool = False) -> None:
    """Note a retraction, or its undoing."""
    properties = recorded.event.properties
    type_, key = properties.get("type"), properties.get("key")
    if type_ not in TYPES or type(key) is not str or not 0 < len(key) <= FACT_KEY_LENGTH_MAX:
        return
    at: Any = recorded.event.occurred_at
    id: Any = recorded.id
    bit = RETRACTED
    if recorded.event.type == FACT_RESTORED:
        at, id, bit = properties.get("retracted_at"), properties.get("retraction"), RESTORED
        if type(at) is not int or not -(2**63) <= at < 2**63 or type(id) is not str or len(id) != len(recorded.id):
            return
    facts = opened(state, RETRACTED_FACTS)
    fact = f"{type_}/{key}"
    kept = piece_of(facts, fact)
    if kept is None:
        kept = facts[fact] = []
    add_retraction(kept, at, id, bit, FACT_RETRACTIONS_MAX)
    if len(facts) > FACTS_RETRACTED_MAX:
        del facts[max(facts, key=hash_of)]
    close(state, RETRACTED_FACTS, facts, packed)
