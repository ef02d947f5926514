"""People about whom searches are made, with an index in memory, and a second way to find what one should find."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from tests.capabilities.asked import Asked
from threadline.capabilities.ask.search.documents import document_of
from threadline.capabilities.ask.search.naming import named_people
from threadline.engine.erasure.erased_ids import erased_since
from threadline.engine.folding.catalogue import Catalogue
from threadline.exports.search.embedded import EmbeddedIndex


@cache
def _catalogue(definitions: str) -> Catalogue:
    return Asked(definitions=definitions).engine.catalogue


def searching(definitions: str = "") -> Asked:
    asked = Asked(catalogue=_catalogue(definitions))
    engine = asked.engine
    erased, people_of = partial(erased_since, engine.store), partial(named_people, engine)
    engine.search = EmbeddedIndex(None, engine.log, document_of, erased, people_of)
    return asked


def find(asked: Asked, text: str = "", **params: Any) -> list[str]:
    """The ids of all hits, page by page."""
    ids: list[str] = []
    cursor = ""
    while True:
        page = asked.ask("search_find", text=text, cursor=cursor, **params)
        ids += [hit["event"]["id"] for hit in page["hits"]]
        cursor = page["next"]
        if not cursor:
            assert page["complete"], page
            return ids


def words(text: str) -> list[str]:
    """The words of a text, by the categories of its characters one by one."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    found, word = [], ""
    for c in plain:
        is_letter = unicodedata.category(c)[0] in "LN"
        is_word = is_letter and any(name in unicodedata.name(c, "") for name in ("CJK", "HIRAGANA", "KATAKANA", "THAI"))
        if not is_letter or is_word:
            found += [word] if word else []
            word = ""
        if is_word:
            found.append(c)
        elif is_letter:
            word += c.lower()
    return [*found, word] if word else found


def occurs(sought: Sequence[str], text: Sequence[str], *, beginning: bool) -> bool:
    """Whether words stand in a text one after the other."""
    for start in range(len(text) - len(sought) + 1):
        here = text[start : start + len(sought)]
        last = here[-1].startswith(sought[-1]) if beginning else here[-1] == sought[-1]
        if here[:-1] == list(sought[:-1]) and last:
            return True
    return False
