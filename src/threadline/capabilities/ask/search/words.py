"""The words of a query: all must occur; "in this order" in quotes, the begin* of a word, and -without it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from threadline.capabilities.ask.search.documents import UNSPACED
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import SEARCH_WORDS_MAX
from threadline.kernel.search import Phrase

BEGINNING_LENGTH_MIN = 3
"""Letters of the beginning of a word: fewer are those of too many words."""
FRAGMENTS_MAX = 5
FRAGMENT_AROUND = 60
"""Characters that a fragment shows before its first highlighted word and after it."""

_PART = re.compile(r'(-?)(?:"([^"]*)("\*?)?|(\S+))')
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
"""The words of a text where they stand in it, as an index has them."""


def phrases_of(text: str) -> tuple[Phrase, ...]:
    """The phrases of a query. Raises `InvalidValue` for one without any word, and for one with too many."""
    phrases: list[Phrase] = []
    for minus, quoted, end, plain in _PART.findall(text):
        words = words_of(quoted or plain)
        if not words:
            continue
        beginning = (end or plain).endswith("*")
        if beginning and len(words[-1]) < BEGINNING_LENGTH_MIN:
            raise InvalidValue(
                f"{words[-1]!r} is too short: the beginning of a word has at least {BEGINNING_LENGTH_MIN} letters",
                param="text",
            )
        phrases.append(Phrase(words, beginning, bool(minus)))
    if text.strip() and not phrases:
        raise InvalidValue(f"there is no word in {text[:64]!r}", param="text")
    if sum(len(phrase.words) for phrase in phrases) > SEARCH_WORDS_MAX:
        raise InvalidValue(f"a query has at most {SEARCH_WORDS_MAX} words", param="text")
    return tuple(phrases)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, as an index has them."""
    return tuple(_WORD.findall(text))


class Fragment(NamedTuple):
    """A part of an event in which words of a query occur."""

    path: str
    text: str
    spans: list[tuple[int, int]]
    """Where they stand in the text: start and end."""


def fragments(texts: Iterable[tuple[str, str]], phrases: Iterable[Phrase]) -> list[Fragment]:
    """The first parts of these texts in which wanted words occur. Words of a phrase are marked wherever they stand."""
    included = [phrase for phrase in phrases if not phrase.is_excluded]
    whole = {folded(word) for phrase in included for word in phrase.words}
    begun = tuple(folded(phrase.words[-1]) for phrase in included if phrase.is_beginning)
    candidates = (_fragment(path, text, whole, begun) for path, text in texts)
    some = (fragment for fragment in candidates if fragment is not None)
    return [fragment for _, fragment in zip(range(FRAGMENTS_MAX), some, strict=False)]


def _fragment(path: str, text: str, whole: set[str], begun: tuple[str, ...]) -> Fragment | None:
    spans = [
        match.span()
        for match in _WORD.finditer(text)
        if (word := folded(match[0])) in whole or (begun and word.startswith(begun))
    ]
    if not spans:
        return None
    start, stop = max(0, spans[0][0] - FRAGMENT_AROUND), spans[0][1] + FRAGMENT_AROUND
    inside = [(first - start, last - start) for first, last in spans if last <= stop]
    return Fragment(path, text[start:stop], inside)


def folded(word: str) -> str:
    """A word as an index compares it: without accents and in lower case."""
    if word.isascii():
        return word.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)).casefold()
