"""Where values stand in an event: paths with alternatives, keys made of them, and what of a value may be kept."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import msgspec

from threadline.kernel.event import Event
from threadline.kernel.limits import FACT_KEY_LENGTH_MAX, FACT_VALUE_BYTES_MAX
from threadline.kernel.reading import ENTRY

Element = dict[str, Any]
"""What a fact is made of: an event's properties, or one entry of a list or mapping in them."""

Getter = Callable[[Element, Event], Any]

_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_SLUG_LENGTH_MAX = 64
_SLUG_READ_MAX = 1_000
_ACCENTED = ("LATIN ", "GREEK ", "CYRILLIC ")
"""Scripts whose letters are the same letters with and without their marks. In others a mark may be a vowel."""
SURELY_SHORT = FACT_VALUE_BYTES_MAX // 4
"""Characters of a text that has at most `FACT_VALUE_BYTES_MAX` bytes whatever they are."""


@dataclass(frozen=True, slots=True)
class Places:
    """A path, or several of which the first that leads somewhere counts."""

    steps: tuple[tuple[str, ...], ...]
    of_entries: bool = False
    """Whether paths start in one entry of a list; a first step ``event`` then leads back to the properties."""

    def getter(self) -> Getter:
        """A function that follows the paths; it answers None where none leads anywhere."""
        getters = [_getter_of(*_rooted(steps, self.of_entries)) for steps in self.steps]
        if len(getters) == 1:
            return getters[0]

        def find(element: Element, event: Event) -> Any:
            for getter in getters:
                value = getter(element, event)
                if value is not None:
                    return value
            return None

        return find

    def read_in(self, entries: Places | None, otherwise: Iterable[tuple[str, Places]]) -> Iterator[tuple[str, ...]]:
        """The paths from the event itself, as `Reading` has them: through ``entries`` of a list, or of the one entry
        that stands in for them."""
        for steps in self.steps:
            root, rest = _rooted(steps, self.of_entries)
            if root or entries is None or not self.of_entries:
                yield (root, *rest) if root == "context" else rest
                continue
            yield from ((*listed, ENTRY, *rest) for listed in entries.read_in(None, ()))
            for name, places in otherwise:
                if name == rest[0]:
                    yield from ((*path, *rest[1:]) for path in places.read_in(None, ()))

    def first_and_rest(self) -> tuple[Any, Getter | None]:
        """The name of a field that counts where there is one, and what else to look at. None as a name: look at once;
        as a getter: there is nothing else."""
        first, *rest = self.steps
        if len(first) > 1:
            return None, self.getter()
        return first[0], Places(tuple(rest), self.of_entries).getter() if rest else None


def _getter_of(root: str, steps: tuple[str, ...]) -> Getter:
    """A function that follows one path from its root."""
    name, *rest = steps
    if not rest:
        if root == "":
            return lambda element, event: element.get(name)
        if root == "event":
            return lambda element, event: event.properties.get(name)
        return lambda element, event: event.context.get(name)

    def find(element: Element, event: Event) -> Any:
        value: Any = element if root == "" else event.properties if root == "event" else event.context
        for step in steps:
            value = follow(value, step)
        return value

    return find


def _rooted(steps: tuple[str, ...], of_entries: bool) -> tuple[str, tuple[str, ...]]:
    if len(steps) > 1 and (steps[0] == "context" or (of_entries and steps[0] == "event")):
        return steps[0], steps[1:]
    return "", steps


def follow(value: Any, step: str) -> Any:
    """One step into a mapping, by name, or into a list, by position from 0; None where it leads nowhere."""
    if type(value) is dict:
        return value.get(step)
    if type(value) is list and step.isdecimal() and len(step) <= 4 and int(step) < len(value):
        return value[int(step)]
    return None


def read_places(text: str, of_entries: bool = False) -> Places | None:
    """The paths of a text such as ``total``, ``order.total`` or ``name|product_name``; None if it is none."""
    steps = tuple(tuple(path.strip().split(".")) for path in text.split("|"))
    return Places(steps, of_entries) if all(all(path) for path in steps) else None


# --- keys ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """A value put into a key; ``slug`` makes a plain word of any text."""

    places: Places
    slug: bool = False


Template = tuple[str | Variable, ...]
"""Texts and variables that together make a key."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def read_template(text: str, of_entries: bool = False) -> Template | None:
    """The template of a text such as ``product:{product_id}`` or ``{form}:{question:slug}``; None if it is none."""
    parts: list[str | Variable] = []
    for number, part in enumerate(_VARIABLE.split(text)):
        if number % 2 == 0:
            if "{" in part or "}" in part:
                return None
            parts += [part] if part else []
            continue
        path, colon, option = part.partition(":")
        places = read_places(path, of_entries)
        if places is None or (colon and option != "slug"):
            return None
        parts.append(Variable(places, bool(colon)))
    return tuple(parts) or None


def renderer(template: Template, most: int = FACT_KEY_LENGTH_MAX) -> Callable[[Element, Event], str | None]:
    """A function that makes the key; it answers None where a variable is missing or it would have over ``most``
    characters.
    """
    if len(template) == 1 and isinstance(template[0], Variable) and not template[0].slug:
        only = template[0].places.getter()

        def render_one(element: Element, event: Event) -> str | None:
            key = _key_text(only(element, event))
            return key if 0 < len(key) <= most else None

        return render_one
    parts = [part if isinstance(part, str) else (part.places.getter(), part.slug) for part in template]

    def render(element: Element, event: Event) -> str | None:
        text = ""
        for part in parts:
            if isinstance(part, str):
                text += part
                continue
            getter, slugged = part
            key = _key_text(getter(element, event))
            if slugged:
                key = slug(key)
            if not key:
                return None
            text += key
        return text if len(text) <= most else None

    return render


def _key_text(value: Any) -> str:
    """A value as part of a key: a text without blanks around it or a whole number; empty for anything else."""
    if type(value) is str:
        return value.strip()
    return str(value) if type(value) is int and _INTEGER_MIN <= value <= _INTEGER_MAX else ""


def may_render(template: Template, text: str) -> bool:
    """Whether a template can make this text."""
    pattern = "".join(re.escape(part) if isinstance(part, str) else ".+" for part in template)
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def slug(text: str) -> str:
    """A plain word for a text: small letters and digits of any script, ``_`` for all else, at most 64 characters.

    ``How did you hear of us?`` is ``how_did_you_hear_of_us``. Accents are taken off Latin, Greek and Cyrillic letters.
    What is too long is cut, and what has neither letters nor digits is left out; a hash then tells texts apart.
    """
    read, rest = text[:_SLUG_READ_MAX], text[_SLUG_READ_MAX:]
    plain = re.sub(r"[\W_]+", "_", read.casefold()) if read.isascii() else _plain(read)
    plain = plain.strip("_")
    if text and not plain:
        return _short_hash(text)
    if len(plain) <= _SLUG_LENGTH_MAX and not rest:
        return plain
    suffix = _short_hash(f"{plain} {rest}")
    return f"{plain[: _SLUG_LENGTH_MAX - len(suffix) - 1].rstrip('_')}_{suffix}"


def _plain(text: str) -> str:
    """Letters and digits with the marks that belong to them, ``_`` for all else."""
    plain = ""
    bare = True  # marks that follow are left out
    for c in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold()):
        if unicodedata.category(c)[0] == "M":
            plain += "" if bare else c
        elif c.isalnum():
            plain += c
            bare = not c.isalpha() or unicodedata.name(c, "").startswith(_ACCENTED)
        else:
            plain += "" if plain.endswith("_") else "_"
            bare = True
    return unicodedata.normalize("NFC", plain)


def _short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


# --- values -------------------------------------------------------------------------------------


def keep(value: Any) -> Any:
    """The value if a fact may hold it, else None: plain or nested, of at most `FACT_VALUE_BYTES_MAX` bytes."""
    kind = type(value)
    if kind is str:
        small = len(value) <= SURELY_SHORT or len(value.encode("utf-8", "surrogatepass")) <= FACT_VALUE_BYTES_MAX
        return value if small else None
    if kind is int:
        return value if _INTEGER_MIN <= value <= _INTEGER_MAX else None
    if kind is float:
        return value if isfinite(value) else None
    if kind is dict or kind is list:
        try:
            return value if len(msgspec.msgpack.encode(value)) <= FACT_VALUE_BYTES_MAX else None
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None
    return value if kind is bool else None
