"""MJML, beside the reference implementation: a mail says, shows and links the same, in the same colours and sizes.

The HTML of both differs in a hundred ways that no reader sees, so what is compared is what a mail program shows: each
text with the styles in force where it stands, each picture and each link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from random import Random
from typing import NamedTuple

import pytest
from minijinja import Environment

from tests.capabilities.block_writer import VALUES, BlockWriter
from tests.clients.conftest import RunNode
from threadline.capabilities.foundation.definitions import Part
from threadline.capabilities.foundation.definitions.plain import Json
from threadline.capabilities.reach.mail.blocks import BLOCKS, mjml_of
from threadline.capabilities.reach.mail.filling import Filling, fill

pytestmark = [pytest.mark.client, pytest.mark.slow]

TEMPLATES = 150
INHERITED = ("color", "font-size", "font-weight", "font-style", "text-align", "text-decoration", "line-height")
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
UNSEEN = {"head", "style", "script", "title"}


class Shown(NamedTuple):
    """Something that a reader sees."""

    what: str
    """A text, or the address of a picture."""
    link: str
    styles: tuple[tuple[str, str], ...]


class Reader(HTMLParser):
    """Reads HTML as a mail program would that knows the styles of elements only."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str], str]] = []
        self.shown: list[Shown] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        styles, link = (dict(self.open[-1][1]), self.open[-1][2]) if self.open else ({}, "")
        own = styles_of(given.get("style", ""))
        styles |= {name: value for name, value in own.items() if name in INHERITED}
        if "align" in given and "text-align" not in own:
            styles["text-align"] = given["align"]
        if tag == "img":
            size = given.get("width", "").partition(".")[0]  # as HTML has it: whole pixels
            self.shown.append(Shown(f"{given.get('src')} ({given.get('alt')}) {size}", link, ()))
        if tag not in VOID:
            self.open.append((tag, styles, given.get("href", link)))

    def handle_endtag(self, tag: str) -> None:
        while self.open and tag in {name for name, _, _ in self.open}:
            if self.open.pop()[0] == tag:
                return

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not any(name in UNSEEN for name, _, _ in self.open):
            _, styles, link = self.open[-1] if self.open else ("", {}, "")
            self.shown.append(Shown(text, link, tuple(sorted(styles.items()))))


def styles_of(text: str) -> dict[str, str]:
    pairs = (part.partition(":") for part in text.split(";") if ":" in part)
    return {name.strip().lower(): colour(" ".join(value.split()).lower()) for name, _, value in pairs}


def colour(value: str) -> str:
    """A colour of three digits as it is with six; any other value as it is."""
    return f"#{''.join(2 * digit for digit in value[1:])}" if re.fullmatch("#[0-9a-f]{3}", value) else value


def shown(html: str) -> list[Shown]:
    reader = Reader()
    reader.feed(re.sub(r"<!--.*?-->", "", html, flags=re.DOTALL))
    return reader.shown


def filled(source: str) -> str:
    """What is sent of a template without values."""
    names = {"subject": "t: subject", "mjml": "t: mjml"}
    made = fill(Filling(names, {"t: subject": "Hi", "t: mjml": source}, (), {}))
    assert made.failure == "", source
    return made.html


class Writer:
    """Writes templates of all the elements that a mail is usually made of."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = 0

    def word(self) -> str:
        self.words += 1
        return (
            f"{self.random.choice(('Hello', 'Grüße', 'ציון', 'Until Sunday', '20 %', '“quoted”', '👋'))} {self.words}"
        )

    def attributes(self, **choices: Sequence[str]) -> str:
        chosen = [name for name in choices if self.random.random() < 0.5]
        gap = self.random.choice((" ", "\n    "))
        return "".join(f'{gap}{name.replace("_", "-")}="{self.random.choice(choices[name])}"' for name in chosen)

    def styled(self) -> str:
        return self.attributes(
            color=("#123456", "red", "#abc"),
            font_size=("11px", "22px"),
            align=("left", "center", "right"),
            font_weight=("bold", "400"),
            line_height=("1.5", "30px"),
            padding=("0", "4px 8px"),
            css_class=("a", "b c"),
        )

    def text(self) -> str:
        inner = self.random.choice(
            (
                "{}",
                "<b>{}</b>",
                '<a href="https://shop.example/?a=1&amp;b=2" style="color: green">{}</a>',
                '<p style="\n margin: 0;\n color: navy;\n">{}</p>',
                "{}<br/>more",
                '<span style="font-size: 9px">{}</span> &amp; more',
            )
        )
        return f"<mj-text{self.styled()}>{inner.format(self.word())}</mj-text>"

    def button(self) -> str:
        given = self.attributes(
            background_color=("#004400", "teal"),
            color=("white", "#eee"),
            border_radius=("0", "9px"),
            font_size=("12px",),
        )
        return f'<mj-button href="https://shop.example/b/{self.words}"{given}>{self.word()}</mj-button>'

    def image(self) -> str:
        given = self.attributes(
            alt=("A shoe", "", "“Sale”"),
            width=("120px", "77px"),
            href=("https://shop.example/i",),
            align=("left", "right"),
        )
        return f'<mj-image src="https://shop.example/{self.words}.png"{given} />'

    def table(self) -> str:
        rows = "".join(f"<tr><td>{self.word()}</td><td>9,90 €</td></tr>" for _ in range(self.random.randrange(1, 4)))
        return f"<mj-table{self.attributes(color=('#333', 'gray'), font_size=('10px',))}>{rows}</mj-table>"

    def social(self) -> str:
        names = self.random.sample(("one", "two", "three"), self.random.randrange(1, 4))
        elements = "".join(
            f'<mj-social-element src="https://shop.example/{name}.png" href="https://{name}.example/">{self.word()}'
            "</mj-social-element>"
            for name in names
        )
        return f"<mj-social{self.attributes(font_size=('13px', '16px'), color=('#555',))}>{elements}</mj-social>"

    def navbar(self) -> str:
        links = "".join(f'<mj-navbar-link href="/n/{self.words}">{self.word()}</mj-navbar-link>' for _ in range(3))
        return f'<mj-navbar base-url="https://shop.example">{links}</mj-navbar>'

    def raw(self) -> str:
        # Within a column this stands in a table, out of which a browser moves all that is no row.
        return f'<mj-raw><tr><td class="a" style="color: maroon">{self.word()}</td></tr></mj-raw>'

    def hero(self) -> str:
        given = self.attributes(background_color=("#222",), mode=("fluid-height",), padding=("40px 0",))
        return f"<mj-hero{given}>{self.text()}{self.button()}</mj-hero>"

    def part(self) -> str:
        choice = self.random.randrange(11)
        if choice < 4:
            return self.text()
        if choice > 8:
            return self.navbar() if choice == 9 else self.raw()
        if choice == 7:
            return self.random.choice(('<mj-divider border-color="#ccc" />', '<mj-spacer height="20px" />'))
        return (self.button, self.image, self.table, self.button, self.social)[choice % 5]()

    def column(self) -> str:
        given = self.attributes(background_color=("#fafafa",), padding=("5px",), vertical_align=("middle",))
        return f"<mj-column{given}>{''.join(self.part() for _ in range(self.random.randrange(1, 4)))}</mj-column>"

    def section(self) -> str:
        columns = "".join(self.column() for _ in range(self.random.randrange(1, 4)))
        inner = self.random.choice((columns, columns, f"<mj-group>{columns}</mj-group>"))
        given = self.attributes(
            background_color=("#eee", "ivory"), padding=("0", "10px"), text_align=("center", "left")
        )
        section = f"<mj-section{given}>{inner}</mj-section>"
        return self.random.choice((section, section, f"<mj-wrapper{given}>{section}</mj-wrapper>", self.hero()))

    def head(self) -> str:
        parts = [
            f"<mj-title>{self.word()}</mj-title>",
            f"<mj-preview>{self.word()}</mj-preview>",
            '<mj-attributes><mj-all font-family="Arial" /><mj-text color="#777" line-height="20px" /></mj-attributes>',
            '<mj-attributes><mj-class name="big" font-size="30px" /><mj-button font-size="18px" /></mj-attributes>',
            '<mj-style inline="inline">.a { color: purple; }</mj-style>',
        ]
        return f"<mj-head>{''.join(part for part in parts if self.random.random() < 0.4)}</mj-head>"

    def template(self) -> str:
        body = "".join(self.section() for _ in range(self.random.randrange(1, 4)))
        return f"<mjml>{self.head()}<mj-body{self.attributes(width=('500px', '700px'))}>{body}</mj-body></mjml>"


def test_a_template_shows_what_the_reference_implementation_shows(node: RunNode) -> None:
    random = Random("mjml")
    templates = [Writer(random).template() for _ in range(TEMPLATES)]
    theirs = node("mjml.mjs", templates=templates)
    different = []
    for source, their in zip(templates, theirs, strict=True):
        assert their["errors"] == [], source
        ours = filled(source)
        if shown(ours) != shown(their["html"]):
            different.append((source, ours, their["html"]))
    assert different == []
    assert sum(len(shown(their["html"])) for their in theirs) > 10 * TEMPLATES


def test_blocks_are_mjml_that_the_reference_implementation_accepts_and_shows_alike(node: RunNode) -> None:
    random = Random("blocks")
    made = []
    for _ in range(TEMPLATES):
        blocks = BLOCKS.read(Part(Json("blocks", "blocks"), BlockWriter(random).blocks()))
        lines = mjml_of(blocks, random.choice(("", "Soon")), random.choice(("", "#aa0011")), random.choice(("", "de")))
        made.append(with_values("\n".join(line for line, _ in lines)))
    for source, their in zip(made, node("mjml.mjs", templates=made), strict=True):
        assert their["errors"] == [], source
        assert shown(filled(source)) == shown(their["html"]), source


def with_values(source: str) -> str:
    """MJML whose values are filled in, as it is before it becomes HTML."""
    urls = {"unsubscribe_url": "https://shop.example/u", "preferences_url": "https://shop.example/p"}
    environment = Environment(templates={"t": source}, auto_escape_callback=lambda name: True)
    return environment.render_template("t", **VALUES, **urls)
