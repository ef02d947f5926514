"""The text part of a mail that has only an HTML part: its words in reading order, with the address of each link."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_HIDDEN = frozenset({"head", "style", "script", "title", "template"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "div", "dl", "dt", "dd", "fieldset", "figure", "footer", "form",
    "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table",
    "tbody", "thead", "tr", "ul"
})  # fmt: skip
_APART = frozenset({"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"})
"""Blocks with an empty line before and after them."""
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
"""Elements that have no end."""
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_LINE = "\n"
_INVISIBLE = "\u200c\u200b\ufeff"
"""What fills the line that programs show beside the subject."""
_BLOCK, _APART_BLOCK = "\x00", "\x01"
"""The edge of a block, and of one that stands apart; neither can stand in HTML."""
_EDGES = re.compile(r"[ \n]*[\x00\x01][ \n\x00\x01]*")


class _Reader(HTMLParser):
    """Collects the text that a reader sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []
        """The open elements from the first hidden one on."""
        self._links: list[tuple[str, int]] = []
        """The address of each open link, and how many parts there were before it."""
        self._lists: list[int | None] = []
        """The next number of each open list; None for one without numbers."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        given = {name: value or "" for name, value in attrs}
        if self._hidden or tag in _HIDDEN or "hidden" in given or _NOT_SHOWN.search(given.get("style", "")):
            if tag not in VOID:
                self._hidden.append(tag)
            return
        self._break(tag)
        if tag == "br":
            self.parts.append(_LINE)
        elif tag == "img" and given.get("alt", "").strip():
            self.parts.append(f"[{given['alt'].strip()}]")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag == "a":
            self._links.append((given.get("href", "").strip(), len(self.parts)))
        elif tag in ("ol", "ul"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self.parts.append(self._bullet())

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if self._hidden:
            # An end tag that was forgotten does not hide the rest: the outer element ends the inner ones.
            if tag in self._hidden:
                del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
            return
        if tag == "a" and self._links:
            self._end_link(*self._links.pop())
        elif tag in ("ol", "ul") and self._lists:
            self._lists.pop()
        self._break(tag)

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self._hidden:
            self.parts.append(_BLANKS.sub(" ", data.replace(_BLOCK, "").replace(_APART_BLOCK, "")))

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append(_APART_BLOCK if tag in _APART else _BLOCK)

    def _bullet(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _end_link(self, address: str, start: int) -> None:
        shown = "".join(self.parts[start:]).strip(" \x00\x01\n")
        # A link in the page itself leads nowhere in text.
        if address and not address.startswith("#") and address.removeprefix("mailto:") != shown:
            self.parts.append(f" ({address})" if shown else address)


def text_of(html: str) -> str:
    """The words of an HTML part. Lines are as long as its paragraphs."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    text = _EDGES.sub(_edge, "".join(reader.parts).replace("\xa0", " "))
    lines = (_BLANKS.sub(" ", line).strip().strip(_INVISIBLE) for line in text.split(_LINE))
    return _LINE.join(lines).strip() + _LINE


def _edge(match: re.Match[str]) -> str:
    """Blocks that end and begin at one place make one line break, or an empty line if one of them stands apart."""
    return _LINE * 2 if _APART_BLOCK in match[0] else _LINE
