"""Blocks: whatever is written in them becomes MJML that is accepted, and every word of them is seen."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.block_writer import VALUES, BlockWriter
from threadline.capabilities.foundation.definitions import Definitions, Part
from threadline.capabilities.foundation.definitions.plain import Json
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.reach.mail.blocks import BLOCKS, Block, mjml_of
from threadline.capabilities.reach.mail.definition import read_mail
from threadline.capabilities.reach.mail.filling import Filled, Filling, fill
from threadline.capabilities.reach.mail.plain_text import VOID
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition

URLS = {"unsubscribe_url": "https://shop.example/u?t=1", "preferences_url": "https://shop.example/p"}


def read(blocks: list[dict[str, Any]]) -> tuple[Block, ...]:
    return BLOCKS.read(Part(Json("blocks", "blocks"), blocks))


def filled(blocks: list[dict[str, Any]], preheader: str = "") -> Filled:
    source = "\n".join(line for line, _ in mjml_of(read(blocks), preheader))
    names = {"subject": "t: subject", "mjml": "t: mjml"}
    return fill(Filling(names, {"t: subject": "Hi", "t: mjml": source}, tuple(URLS), {**VALUES, **URLS}))


class _Balance(HTMLParser):
    """The elements that are open, each closed by its own end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(dict(attrs).get("href"))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


@given(st.randoms(use_true_random=False))
def test_every_word_of_any_blocks_is_in_the_text_part_in_order(random: Random) -> None:
    writer = BlockWriter(random)
    blocks = writer.blocks()
    made = filled(blocks, random.choice(("", "Soon {{ name }} & <more>")))
    assert made.failure == "", blocks
    assert re.findall(r"\bw\d+w\b", made.text) == writer.seen, blocks


@given(st.randoms(use_true_random=False))
def test_elements_of_any_blocks_close_in_order_and_values_stay_text(random: Random) -> None:
    blocks = BlockWriter(random).blocks()
    made = filled(blocks)
    reader = _Balance()
    reader.feed(made.html)
    assert reader.open == []
    assert "<Ada>" not in made.html
    assert {link for link in reader.links if link and "shop.example/?a=1" in link} <= {
        "https://shop.example/?a=1&b=2",
        VALUES["link"],
    }


@given(st.randoms(use_true_random=False))
def test_blocks_are_the_same_after_they_were_written_as_yaml(random: Random) -> None:
    blocks = BlockWriter(random).blocks()
    template = {"subject": "x", "blocks": blocks, "variables": {name: {} for name in VALUES}}
    text = yaml_of({"mail": {"senders": {"s": {"from": "a@shop.example"}}, "templates": {"t": template}}})
    definitions = Definitions([("shop.yaml", text)])
    mail = read_mail(definitions)
    assert definitions.problems == []
    assert mail is not None
    there = [line for line, _ in mjml_of(mail.templates["t"].blocks)]
    assert there == [line for line, _ in mjml_of(read(blocks))]


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_a_heading_a_text_and_an_alt_that_can_be_sent(heading: str, text: str) -> None:
    braces = re.compile(r"\{[{%#]")
    heading, text = (braces.sub("(", words).strip() or "x" for words in (heading, text))
    picture = {"source": "https://s.example/a", "alt": heading}
    made = filled([{"heading": heading}, {"text": text}, {"picture": picture}])
    assert made.failure == ""


MAIL = """\
mail:
  senders: {shop: {from: hello@shop.example}}
  templates:
    welcome:
      subject: Hi
      blocks:
"""


def mistakes(text: str) -> str:
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue.declared(Definitions([("shop.yaml", text)]), rules())
    return str(raised.value)


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ("        - heading: Hi\n        - text: '{{ prson.id }}'\n", "shop.yaml:8: template 'welcome': nothing is"),
        ("        - columns:\n            - - text: a\n              - text: '{{ prson }}'\n", "shop.yaml:9: template"),
        ("        - heading: Hi\n          text: x\n", "has both `heading` and `text`; keep one"),
        ("        - headin: Hi\n", "unknown key 'headin'; did you mean 'heading'?"),
        ("        - columns:\n            - - columns: []\n", "unknown key 'columns'"),
        ("        - divider: line\n          align: left\n", "`align` goes with"),
        ("        - footer: {unsubscribe: ''}\n", "needs `text`, `unsubscribe` or `preferences`"),
        ("        - text: x\n      html: <p>x</p>\n", "has both `html` and `blocks`; keep one"),
        ("        - text: x\n      accent: blue\n", "must be a colour such as #1d4ed8"),
    ],
)
def test_a_mistake_in_a_block_names_its_line(blocks: str, problem: str) -> None:
    assert problem in mistakes(MAIL + blocks)


def test_a_preheader_without_blocks_says_where_it_goes() -> None:
    assert "`preheader` goes with `blocks`" in mistakes(MAIL.replace("blocks:", "text: x\n      preheader: x"))


def test_a_footer_links_to_what_it_names() -> None:
    made = filled([{"footer": {"text": "The Shop", "preferences": "Choose"}}])
    assert made.text.split("\n\n") == [
        "The Shop",
        "Unsubscribe (https://shop.example/u?t=1) · Choose (https://shop.example/p)\n",
    ]
    bare = filled([{"footer": {"text": "The Shop", "unsubscribe": ""}}])
    assert bare.text == "The Shop\n"


def test_the_schema_of_blocks_has_each_of_their_kinds() -> None:
    kinds = {"heading", "text", "button", "picture", "divider", "columns", "footer"}
    assert kinds <= BLOCKS.schema["items"]["properties"].keys()
    assert {way["required"][0] for way in BLOCKS.schema["items"]["oneOf"]} == kinds
    msgspec.json.encode(BLOCKS.schema)
