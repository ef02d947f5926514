"""From one event to the facts that it makes: which they are, and what is read for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from threadline.capabilities.profile.memory.claims import claims_reader
from threadline.capabilities.profile.memory.definition import COUNTED, TYPES, Derivation, Feed, Field
from threadline.capabilities.profile.memory.fact_state import FactStates
from threadline.capabilities.profile.memory.paths import Element, Getter, Places, keep, renderer
from threadline.kernel.event import Event
from threadline.kernel.fixed import FIXED_MAX, SCALE, read_currency, to_fixed
from threadline.kernel.limits import FACT_ENTRIES_MAX, FACT_EVENTS_MAX, FACT_KEY_LENGTH_MAX


class FactDerivation:
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
        self.room = _room_for(derivation.most) if self.many and expires else 0
        """How many pieces of facts that expire are kept until they are sorted out; 0 where none expires."""
        self.where = feed.where
        self._each = None if derivation.each is None else derivation.each.getter()
        self._otherwise = [(name, places.getter()) for name, places in derivation.otherwise]
        lasts = [field.of for field in derivation.fields if field.aggregate == "last"]
        read = lasts if derivation.value is None else [derivation.value]
        self.lasts = [places.first_and_rest() for places in read if places is not None]
        constants = dict(feed.constants)
        self.constants = [constants.get(name) for name in derivation.constants]
        self.cells = [(f.aggregate, _reader(f)) for f in derivation.fields if f.aggregate in ("first", "sum")]
        # Where the key names the thing, each occurrence counts, whatever else the event says.
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

    def pieces(self, part: Any) -> FactStates:
        """The pieces in its part of a state, by what tells them apart."""
        return part if self.many else {"": part}

    def fact(self, part: str) -> tuple[str, str]:
        """Type and key of the fact whose piece has this name."""
        if self._type is None:
            return self._fixed_type, self._beginning + part
        type, _, rest = part.partition("/")
        return type, self._beginning + rest

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
            amount = amount if factor is None else _product(amount, factor)
        if amount is None or currency is None:
            return amount
        return amount, read_currency(currency(element, event))

    return units


def _product(amount: int, factor: Any) -> int | None:
    """The product in units of a millionth, half a unit rounded to even as `to_fixed` does; None for what is too large
    or for a factor that is no number."""
    if type(factor) is int and -_WHOLE_MAX <= factor <= _WHOLE_MAX:
        product = amount * factor
    else:
        units = to_fixed(factor)
        if units is None:
            return None
        whole, rest = divmod(amount * units, SCALE)
        product = whole + (2 * rest > SCALE or (2 * rest == SCALE and whole % 2 == 1))
    return product if -(2**63) < product < 2**63 else None


_WHOLE_MAX = FIXED_MAX // SCALE
"""The largest whole number that `to_fixed` takes."""


def _room_for(most: int) -> int:
    """How many pieces are kept before they are sorted out, where ``most`` may stay."""
    return most + max(most // 4, 1)
