"""Text search among one person's facts: ranked, read from the facts themselves, with no index to keep."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

KEY_WEIGHT = 2.0
"""What a word in a fact's key counts beside one in its value or type."""
BEGINNING_WEIGHT = 0.5
"""What a word counts that only begins with the word sought, which must have three letters at least."""
SATURATION = 1.2
"""BM25's k1: how little further occurrences of a word add."""

_TERM = re.compile(r"[^\W_]+")
_UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA", "THAI ", "LAO ", "KHMER ", "MYANMAR ")
"""Scripts that put no blanks between words, as Unicode names their letters."""
_BEGINNING_LENGTH_MIN = 3
_QUERY_TERMS_MAX = 32


def terms_of(text: str) -> list[str]:
    """The words of a text, case folded and without accents."""
    if text.isascii():
        return _TERM.findall(text.casefold())
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()
    # A vowel that is written as a mark parts no word.
    return "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in plain).split()


def ranked(facts: Iterable[dict[str, Any]], query: str) -> list[tuple[float, dict[str, Any]]]:
    """The facts in which a word of the query occurs, the best first, with their scores; equal ones by type and key.

    A fact's score is the sum over the words sought of idf × f × (k1 + 1) ÷ (f + k1), where f is the weighted number of
    occurrences and idf = ln(1 + (N − n + 0.5) ÷ (n + 0.5)) with n of the person's N facts having the word. It is BM25
    without its term for length, because facts are short.
    """
    known = [(fact, _counted(fact)) for fact in facts]
    scores = [0.0] * len(known)
    for term in list(dict.fromkeys(terms_of(query)))[:_QUERY_TERMS_MAX]:
        occurrences = [_occurrences(term, counts) for _, counts in known]
        having = sum(1 for f in occurrences if f)
        idf = math.log(1 + (len(known) - having + 0.5) / (having + 0.5))
        for index, f in enumerate(occurrences):
            scores[index] += idf * f * (SATURATION + 1) / (f + SATURATION)
    hits = [(round(score, 4), fact) for score, (fact, _) in zip(scores, known, strict=True) if score > 0]
    return sorted(hits, key=lambda hit: (-hit[0], hit[1]["type"], hit[1]["key"]))


def _counted(fact: dict[str, Any]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for term in terms_of(fact["key"]):
        counts[term] += KEY_WEIGHT  # type: ignore[assignment]
    for text in (fact["type"], *_texts(fact["value"])):
        counts.update(terms_of(text))
    return counts


def _occurrences(term: str, counts: Counter[str]) -> float:
    if any(unicodedata.name(c, "").startswith(_UNSPACED) for c in term):
        return sum(count for other, count in counts.items() if term in other)
    whole: float = counts.get(term, 0)
    if len(term) < _BEGINNING_LENGTH_MIN:
        return whole
    begun = sum(count for other, count in counts.items() if other != term and other.startswith(term))
    return whole + BEGINNING_WEIGHT * begun


def _texts(value: Any) -> Iterator[str]:
    """Every text and number in a value, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
