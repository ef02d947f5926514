"""A mail template that is written in blocks: what each button beside the mail does to its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from threadline.capabilities.foundation.definitions.nested_splicing import Path, value_at, with_item, without
from threadline.capabilities.foundation.definitions.splicing import saying, value_of
from threadline.capabilities.reach.journeys.outline import path_of, path_text
from threadline.surfaces.console.item_editing import ITEM_ACTIONS, Drawn

LANGUAGE, NEW_LANGUAGE = "languages.also", "_new_language"
"""The path of the other languages, and the field with the one to be added."""
_IN_LANGUAGE = r"(languages\.also\.[A-Za-z0-9-]+\.)?"
_BLOCK = re.compile(_IN_LANGUAGE + r"blocks\.\d{1,3}(\.columns\.\d{1,2}\.\d{1,3})?")
_OF_LANGUAGE = re.compile(r"languages\.also\.[A-Za-z0-9-]+")
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
NEW_BLOCKS = {
    "heading": "heading: A heading\n",
    "text": "text: Some words\n",
    "button": "button: {text: Look at it, link: https://example.com}\n",
    "picture": "picture: {source: https://example.com/picture.png, alt: What it shows}\n",
    "columns": "columns:\n  - - text: On the left\n  - - text: On the right\n",
    "divider": "divider: line\n",
    "footer": "footer: {text: Your company and its address}\n",
}
"""What may be put in -> its text, before somebody says more."""
CALLED = {
    "heading": "Heading",
    "text": "Text",
    "button": "Button",
    "picture": "Picture",
    "columns": "Columns",
    "divider": "Divider",
    "footer": "Footer",
}
BODIES: Mapping[str, Any] = {
    "blocks": [{"heading": "A heading"}, {"text": "Some words"}, {"footer": {"text": "Your company and its address"}}],
    "mjml": "<mjml>\n  <mj-body>\n    <mj-section>\n      <mj-column>\n        <mj-text>Some words</mj-text>\n"
    "      </mj-column>\n    </mj-section>\n  </mj-body>\n</mjml>\n",
    "html": "<p>Some words</p>\n",
    "text": "Some words\n",
}
"""What the mail may be written as -> how it begins."""


def changed(drawn: Drawn, action: str, language: str) -> Drawn:
    """The same after a button was pressed, such as ``new:blocks.2:text``; ``language`` is one to be added. A button of
    a page that is older than the text does nothing."""
    name, _, rest = action.partition(":")
    at, _, kind = rest.partition(":")
    if name == "new":
        return _new(drawn, at, kind)
    is_chosen = name == "at" and (at == "" or is_language_of(drawn.text, at))
    if name in ITEM_ACTIONS and (is_chosen or is_block_of(drawn.text, at)):
        return ITEM_ACTIONS[name](drawn, at)
    return _ACTIONS[name](drawn, at, language) if name in _ACTIONS else drawn


def is_block_of(text: str, at: str) -> bool:
    """Whether a path leads to a block of a text."""
    return bool(_BLOCK.fullmatch(at)) and isinstance(value_at(value_of(text), path_of(at)), dict)


def is_language_of(text: str, at: str) -> bool:
    """Whether a path leads to what a text says in another language."""
    return bool(_OF_LANGUAGE.fullmatch(at)) and isinstance(value_at(value_of(text), path_of(at)), dict)


def language_at(at: str) -> str:
    """The language that a path is in; empty for that of the template itself."""
    return at.split(".")[2] if at.startswith(f"{LANGUAGE}.") else ""


def root_of(language: str) -> Path:
    """Where what is said in a language stands."""
    return ("languages", "also", language) if language else ()


def languages_of(values: Any) -> list[str]:
    """The languages of a template, that of its own parts first; none where it names none."""
    written = values.get("languages") if isinstance(values, dict) else None
    if not isinstance(written, dict):
        return []
    also = written.get("also")
    return [str(written.get("fallback", "")), *(str(name) for name in (also if isinstance(also, dict) else ()))]


def outlined(values: Any, root: Path) -> list[dict[str, Any]]:
    """The blocks of what is said in a language: the ``path``, ``kind`` and ``gist`` of each, and its ``columns``."""
    return [*_outlined(value_at(values, (*root, "blocks")), (*root, "blocks"))]


def _outlined(blocks: Any, path: Path) -> Iterator[dict[str, Any]]:
    for number, block in enumerate(blocks if isinstance(blocks, list) else ()):
        at = (*path, number)
        kind = next((kind for kind in CALLED if isinstance(block, dict) and kind in block), "")
        columns = value_at(block, ("columns",))
        inner = [
            [*_outlined(pieces, (*at, "columns", number))]
            for number, pieces in enumerate(columns if isinstance(columns, list) else ())
        ]
        yield {"path": path_text(at), "kind": kind, "gist": _gist(block, kind), "columns": inner}


def _gist(block: Any, kind: str) -> str:
    value = value_at(block, (kind,)) if kind else ""
    if isinstance(value, dict):
        value = next((value[name] for name in ("text", "alt", "source") if value.get(name)), "")
    return " ".join(str(value).split()) if isinstance(value, str) else ""


def _new(drawn: Drawn, at: str, kind: str) -> Drawn:
    path = path_of(at)
    is_inside = "columns" in path
    if not _BLOCK.fullmatch(at) or kind not in NEW_BLOCKS or (is_inside and kind in ("columns", "footer")):
        return drawn
    there, number = value_at(value_of(drawn.text), path[:-1]), path[-1]
    if not isinstance(there, list) and (is_inside or there is not None):
        return drawn
    path = (*path[:-1], min(int(number), len(there or ())))
    return Drawn(with_item(drawn.text, path, NEW_BLOCKS[kind]), path_text(path))


def _with_column(drawn: Drawn, at: str, language: str) -> Drawn:
    columns = value_at(value_of(drawn.text), (*path_of(at), "columns"))
    if not is_block_of(drawn.text, at) or not isinstance(columns, list):
        return drawn
    item = "- text: Some words\n"
    return drawn._replace(text=with_item(drawn.text, (*path_of(at), "columns", len(columns)), item))


def _without_column(drawn: Drawn, at: str, language: str) -> Drawn:
    *path, number = path_of(at)
    columns = value_at(value_of(drawn.text), tuple(path))
    if not isinstance(columns, list) or path[-1:] != ["columns"] or not isinstance(number, int):
        return drawn
    return Drawn(without(drawn.text, (*path, number)), path_text(path[:-1])) if len(columns) > 1 else drawn


def _with_language(drawn: Drawn, at: str, language: str) -> Drawn:
    """Another language, which begins with the words of the template itself."""
    values = value_of(drawn.text)
    language = language.strip()
    if not isinstance(values, dict) or not _TAG.fullmatch(language) or language in languages_of(values):
        return drawn
    before = values.get("languages")
    fallback = "de" if language == "en" else "en"
    written = before if isinstance(before, dict) else {"trait": "locale", "fallback": fallback}
    also = written.get("also")
    words = {name: values[name] for name in ("subject", "preheader", *BODIES) if name in values}
    made = {**written, "also": {**(also if isinstance(also, dict) else {}), language: words}}
    return Drawn(saying(drawn.text, {**values, "languages": made}), path_text(root_of(language)))


def _without_language(drawn: Drawn, at: str, language: str) -> Drawn:
    values, path = value_of(drawn.text), path_of(at)
    if not is_language_of(drawn.text, at):
        return drawn
    written = values["languages"]
    also = {name: words for name, words in written["also"].items() if name != path[-1]}
    made = {**values, "languages": {**written, "also": also}}
    if not also:
        del made["languages"]
    return Drawn(saying(drawn.text, made), "")


def _begun(drawn: Drawn, kind: str, language: str) -> Drawn:
    """The mail written as something else, from its beginning."""
    values = value_of(drawn.text)
    if kind not in BODIES or not isinstance(values, dict):
        return drawn
    rest = {name: value for name, value in values.items() if name not in BODIES}
    return Drawn(saying(drawn.text, {**rest, kind: BODIES[kind]}), "")


_ACTIONS: dict[str, Callable[[Drawn, str, str], Drawn]] = {
    "column": _with_column,
    "uncolumn": _without_column,
    "language": _with_language,
    "unlanguage": _without_language,
    "begin": _begun,
}
