"""People as a search index has them: by what names them now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from threadline.capabilities.ask.search.documents import texts_in
from threadline.capabilities.ask.search.words import folded
from threadline.capabilities.profile.people.operations.person import name_in
from threadline.kernel.errors import BeingErased, NotFound, StoreDamaged
from threadline.kernel.limits import SEARCH_TEXT_LENGTH_MAX, SEARCH_WORDS_MAX
from threadline.kernel.ports import Person, Ports
from threadline.kernel.search import NamedPerson
from threadline.kernel.time import parse_time

NAME_LENGTH_MAX = 64
"""Of a name by which lists are sorted."""
DIGITS_MIN = 3
"""Digits from which on they may be a part of a phone number, whatever stands between them."""
CUT = "\1\1\1"
"""What the text of somebody ends with of whom there is more."""
_STROKES = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
"""Letters that people write without what no decomposition takes off."""
_NO_NUMBER = re.compile(r"[^0-9\s+().\-/]")


def named_people(engine: Ports, threads: Sequence[str]) -> dict[str, NamedPerson]:
    """By thread, people by what names them now: their identifiers and the values of their traits.

    Who has gone or cannot be read is left out.
    """
    try:
        people: Mapping[str, Person] = engine.reader.by_threads(threads)
        by_id = {person.id: _named(engine, person) for person in people.values()}
    except (NotFound, StoreDamaged, BeingErased):
        if len(threads) == 1:
            return {}
        # One of them: the others are read without them.
        return {thread: named for alone in threads for thread, named in named_people(engine, [alone]).items()}
    return {thread: by_id[person.id] for thread, person in people.items()}


def _named(engine: Ports, person: Person) -> NamedPerson:
    views = engine.reader.views(person, engine.recorder.now(), names=["activity", "profile"])
    traits = views.get("profile", {}).get("traits", {})
    texts = [text for _, text in naming_texts(engine, person, traits)]
    name = name_in(traits) or (texts[0] if texts else "")
    last = views.get("activity", {}).get("last_seen_at")
    return NamedPerson(
        person.id,
        person.workspace,
        tuple(sorted(person.heads)),
        plain(name)[:NAME_LENGTH_MAX],
        _joined(map(plain, texts)),
        person.created_at,
        None if last is None else parse_time(last),
    )


def _joined(texts: Iterable[str]) -> str:
    text = "\n".join(texts)
    return text if len(text) <= SEARCH_TEXT_LENGTH_MAX else f"{text[:SEARCH_TEXT_LENGTH_MAX]}\n{CUT}"


def naming_texts(engine: Ports, person: Person, traits: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What names a person, each with where it stands: identifiers, the strongest first, then traits."""
    own = sorted(person.identifiers.values(), key=engine.catalogue.rules.rank)
    return [(f"identifiers.{identifier.kind}", identifier.value) for identifier in own] + list(
        texts_in("properties", traits)
    )


def plain(text: str) -> str:
    """A text as it is compared, on one line, and as a file can have it."""
    compared = folded(" ".join(text.replace("\0", " ").split()))
    return compared if compared.isascii() else compared.translate(_STROKES).encode("utf-8", "replace").decode()


def parts_of(text: str) -> tuple[tuple[str, ...], ...]:
    """The parts of a text that is looked for, as an index compares them: its words, and the digits of what may be a
    part of a phone number. Without any it is about nobody."""
    words = tuple(filter(None, map(plain, text.split()[:SEARCH_WORDS_MAX])))
    digits = "".join(filter(str.isdigit, text)).lstrip("0")
    is_number = len(digits) >= DIGITS_MIN and not _NO_NUMBER.search(text)
    return tuple(dict.fromkeys(filter(None, (words, (digits,) if is_number else ()))))


def matching(
    engine: Ports, person: Person, traits: Mapping[str, Any], parts: tuple[tuple[str, ...], ...]
) -> tuple[str, str, list[tuple[int, int]]] | None:
    """Where the first of some parts stands in what names a person, the text there, and where in it; None if they are
    not all there."""
    texts = [(path, text, plain(text)) for path, text in naming_texts(engine, person, traits)]
    for words in parts:
        places = [next((place for place in texts if word in place[2]), None) for word in words]
        if places and None not in places and places[0] is not None:
            path, text, compared = places[0]
            start = compared.find(words[0])
            # Folded, a text may be longer than it is: then nobody can say where in it.
            return path, text, [(start, start + len(words[0]))] if len(compared) == len(text) else []
    return None
