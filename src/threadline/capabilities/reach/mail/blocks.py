"""Blocks that a mail is made of, and the MJML that they become.

    blocks:
      - heading: "Welcome, {{ person.traits.first_name | default('friend') }}"
      - text: |
          Your order is **on its way**.
      - button: {text: Follow it, link: "https://shop.example/orders"}
      - footer: {text: "The Shop, 1 Market Street"}

Texts are written plainly: an empty line begins a paragraph, ``- `` an item of a list, ``**`` bold, ``*`` italic, and
``[words](address)`` is a link. What stands in braces is filled in afterwards, as in any template.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions.declaring import (
    LINES,
    Form,
    Given,
    Problems,
    described,
    listed,
    struct,
    text,
)
from threadline.kernel.limits import MAIL_BLOCKS_MAX, MAIL_COLUMNS_MAX

WIDTH = 600
"""Of a mail in pixels."""
ACCENT = "#1d4ed8"
PICTURE = re.compile(r"picture:([0-9a-f]{32}\.(?:png|jpg|gif|webp))")
"""The source of a picture that was uploaded, with the last part of its address."""

COLOR = text("a colour such as #1d4ed8", "#[0-9a-fA-F]{6}")
_LONG = described(text(most=20_000), **{LINES: True})
_TEXT = text(most=1_000)

_EXPRESSION = re.compile(
    r"""\{#.*?#\}|\{[{%](?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|.)*?[%}]\}""",
    re.DOTALL,
)
"""What is filled in later, and comments."""
_ASIDE = re.compile("\x00(\\d+)\x00")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_ITEM = re.compile(r"[-*][ \t]+")
_MARKUP = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)|\*\*(.+?)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """A link that looks like a button."""

    text: Annotated[str, _TEXT]
    link: Annotated[str, _TEXT, Meta(description="Where it leads, such as https://shop.example/sale.")]
    color: Annotated[str, COLOR, Meta(description="Its colour; else the accent of the template.")] = ""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture."""

    source: Annotated[
        str, _TEXT, Meta(description="Its https address, or `picture:` and the file of one that was uploaded.")
    ]
    alt: Annotated[str, text(least=0, most=1_000), Meta(description="What people read who do not see it.")] = ""
    link: Annotated[str, _TEXT, Meta(description="Where a click leads.")] = ""
    width: Annotated[int | None, Meta(ge=1, le=WIDTH, description="In pixels; else as wide as the mail.")] = None

    def problems(self, written: Collection[str]) -> Problems:
        """A file that no upload has."""
        if self.source.startswith("picture:") and not PICTURE.fullmatch(self.source):
            yield "source", "`picture:` goes before the file of a picture that was uploaded; `mail_pictures` lists them"


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """Who has sent the mail, and how somebody gets no more of them."""

    text: Annotated[str, _LONG, Meta(description="Such as the name and postal address of the sender.")] = ""
    unsubscribe: Annotated[
        str, text(least=0, most=200), Meta(description="What the link says; empty for none, as in a receipt.")
    ] = "Unsubscribe"
    preferences: Annotated[
        str, _TEXT, Meta(description="What the link says that leads to all topics; else there is none.")
    ] = ""

    def problems(self, written: Collection[str]) -> Problems:
        """A footer of nothing."""
        if not (self.text or self.unsubscribe or self.preferences):
            yield "", "needs `text`, `unsubscribe` or `preferences`"


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A block that may stand in a column."""

    one_of: ClassVar[tuple[str, ...]] = ("heading", "text", "button", "picture", "divider")

    heading: Annotated[str, _TEXT] = ""
    text: Annotated[
        str, _LONG, Meta(description="Paragraphs, with `**bold**`, `*italic*` and `[links](https://shop.example)`.")
    ] = ""
    button: Button | None = None
    picture: Picture | None = None
    divider: Annotated[Literal["line", "space"] | None, Meta(description="A line, or room.")] = None
    align: Annotated[
        Literal["left", "center", "right"] | None,
        Meta(description="Without it left; a button and a picture stand in the middle."),
    ] = None
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """What has no side."""
        aligned = ("heading", "text", "button", "picture")
        if self.align is not None and not any(name in written for name in aligned):
            yield "align", "`align` goes with `heading`, `text`, `button` or `picture`"


_PIECES: Form[tuple[Piece, ...]] = listed(struct(Piece), 1, MAIL_BLOCKS_MAX)


class Block(Piece, frozen=True, kw_only=True):
    """One block of a mail."""

    one_of: ClassVar[tuple[str, ...]] = (*Piece.one_of, "columns", "footer")

    columns: Annotated[
        tuple[tuple[Piece, ...], ...],
        listed(_PIECES, 1, MAIL_COLUMNS_MAX),
        Meta(description="Blocks side by side; on a phone one column after the other."),
    ] = ()
    footer: Footer | None = None


BLOCKS: Form[tuple[Block, ...]] = listed(struct(Block), 1, MAIL_BLOCKS_MAX)


# --- what they become -----------------------------------------------------------------------------


def mjml_of(
    blocks: Sequence[Block], preheader: str = "", accent: str = "", language: str = ""
) -> list[tuple[str, str]]:
    """The lines of the MJML, each with the place of the block that it is made of; empty for what is of none."""
    accent = accent or ACCENT
    lang = f' lang="{language}"' if language else ""
    lines = [(f"<mjml{lang}>", "")]
    lines += [(line, "") for line in _head(preheader, accent)]
    lines.append((f'<mj-body background-color="#f4f4f5" width="{WIDTH}px">', ""))
    pending: list[Block] = []
    for block in blocks:
        if block.columns:
            lines += _section(pending, accent)
            pending = []
            lines += _columns(block, accent)
        else:
            pending.append(block)
    lines += _section(pending, accent)
    lines += [("</mj-body>", ""), ("</mjml>", "")]
    return lines


def _head(preheader: str, accent: str) -> Iterator[str]:
    yield "<mj-head>"
    if preheader:
        yield f"<mj-preview>{_line(preheader)}</mj-preview>"
    yield (
        '<mj-attributes><mj-all font-family="Helvetica, Arial, sans-serif" />'
        '<mj-text color="#18181b" font-size="16px" line-height="24px" padding="8px 24px" />'
        f'<mj-button background-color="{accent}" color="#ffffff" font-size="16px" border-radius="6px" '
        'padding="12px 24px" /><mj-image padding="8px 24px" />'
        '<mj-divider border-color="#d4d4d8" border-width="1px" padding="16px 24px" /></mj-attributes>'
    )
    # Programs that have a dark mode of their own leave alone what brings one.
    yield (
        "<mj-style>@media (prefers-color-scheme: dark) { body, .paper, .paper > table { background-color: #18181b "
        "!important; background: #18181b !important } .words div, .words p, .words li { color: #f4f4f5 !important } "
        ".words a { color: #93c5fd !important } }</mj-style>"
    )
    yield "</mj-head>"


def _section(blocks: Sequence[Block], accent: str) -> Iterator[tuple[str, str]]:
    if not blocks:
        return
    yield '<mj-section css-class="paper" background-color="#ffffff" padding="8px 0"><mj-column>', ""
    for block in blocks:
        made = _footer(block.footer) if block.footer is not None else _piece(block, accent)
        yield made, block.place
    yield "</mj-column></mj-section>", ""


def _columns(block: Block, accent: str) -> Iterator[tuple[str, str]]:
    yield '<mj-section css-class="paper" background-color="#ffffff" padding="8px 0">', block.place
    for column in block.columns:
        yield '<mj-column vertical-align="top">', block.place
        for piece in column:
            yield _piece(piece, accent), piece.place
        yield "</mj-column>", ""
    yield "</mj-section>", ""


def _piece(piece: Piece, accent: str) -> str:
    if piece.button is not None:
        button, color = piece.button, piece.button.color and f' background-color="{piece.button.color}"'
        return (
            f'<mj-button href="{_line(button.link)}" align="{piece.align or "center"}"{color}>'
            f"{_line(button.text)}</mj-button>"
        )
    if piece.picture is not None:
        return _picture(piece.picture, piece.align or "center")
    if piece.divider is not None:
        return "<mj-divider />" if piece.divider == "line" else '<mj-spacer height="24px" />'
    align = f'css-class="words" align="{piece.align or "left"}"'
    if piece.heading:
        style = 'font-size="24px" line-height="32px" font-weight="700"'
        return f"<mj-text {align} {style}>{_line(piece.heading)}</mj-text>"
    return f"<mj-text {align}>{_paragraphs(piece.text, accent)}</mj-text>"


def _picture(picture: Picture, align: str) -> str:
    uploaded = PICTURE.fullmatch(picture.source)
    source = f"{{{{ pictures_url }}}}/{uploaded[1]}" if uploaded else _line(picture.source)
    link = picture.link and f' href="{_line(picture.link)}"'
    width = f' width="{picture.width}px"' if picture.width else ""
    return f'<mj-image src="{source}" alt="{_line(picture.alt)}" align="{align}"{link}{width} />'


def _footer(footer: Footer) -> str:
    links = [
        f'<a href="{{{{ {url} }}}}" style="color: #71717a">{_line(words)}</a>'
        for words, url in ((footer.unsubscribe, "unsubscribe_url"), (footer.preferences, "preferences_url"))
        if words
    ]
    parts = [_paragraphs(footer.text, "#71717a")] if footer.text else []
    if links:
        parts.append(f'<p style="margin: 0">{" · ".join(links)}</p>')
    return f'<mj-text align="center" font-size="12px" line-height="18px" color="#71717a">{"".join(parts)}</mj-text>'


# --- words ----------------------------------------------------------------------------------------


def _line(words: str) -> str:
    """Words on one line, as they stand in an element or an attribute."""
    words, asides = _set_aside(" ".join(words.split("\n")))
    return _put_back(html.escape(words.strip()), asides)


def _paragraphs(words: str, accent: str) -> str:
    """Paragraphs and lists, on one line."""
    words, asides = _set_aside(words.replace("\r", ""))
    parts = [part for part in _PARAGRAPH.split(html.escape(words).strip()) if part]
    made = [_paragraph(part, accent, number == len(parts) - 1) for number, part in enumerate(parts)]
    return _put_back("".join(made), asides)


def _paragraph(words: str, accent: str, is_last: bool) -> str:
    margin = "0" if is_last else "0 0 16px"
    lines = [line.strip() for line in words.split("\n")]
    if all(_ITEM.match(line) for line in lines):
        items = "".join(f"<li>{_marked_up(_ITEM.sub('', line, count=1), accent)}</li>" for line in lines)
        return f'<ul style="margin: {margin}; padding-left: 20px">{items}</ul>'
    return f'<p style="margin: {margin}">{"<br />".join(_marked_up(line, accent) for line in lines)}</p>'


def _marked_up(words: str, accent: str) -> str:
    """Words with bold, italic and links. What is inside is marked up by itself, so that no two elements overlap."""
    made, at = [], 0
    for match in _MARKUP.finditer(words):
        made.append(words[at : match.start()])
        at = match.end()
        linked, address, bold, italic = match.groups()
        if address is not None:
            made.append(f'<a href="{address}" style="color: {accent}">{_marked_up(linked, accent)}</a>')
        else:
            tag, inner = ("b", bold) if bold is not None else ("i", italic)
            made.append(f"<{tag}>{_marked_up(inner, accent)}</{tag}>")
    return "".join([*made, words[at:]])


def _set_aside(words: str) -> tuple[str, list[str]]:
    """The words with a mark for each expression, and the expressions, each on one line."""
    asides: list[str] = []

    def mark(match: re.Match[str]) -> str:
        asides.append(" ".join(match[0].split("\n")))
        return f"\x00{len(asides) - 1}\x00"

    return _EXPRESSION.sub(mark, _CONTROL.sub("", words)), asides


def _put_back(words: str, asides: Sequence[str]) -> str:
    return _ASIDE.sub(lambda match: asides[int(match[1])], words)
