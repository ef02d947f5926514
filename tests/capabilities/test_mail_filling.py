"""Templates filled in: what mrml and css-inline make of them is what was written, or the mail says why not."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.capabilities.reach.mail.filling import Filled, Filling, fill, paths_in
from threadline.kernel.limits import MAIL_CHAIN_MAX, MAIL_DEPTH_MAX

MJML = "<mjml><mj-body><mj-section><mj-column>{}</mj-column></mj-section></mj-body></mjml>"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))


def filled(html: str = "", mjml: str = "", **values: object) -> Filled:
    """What a template makes of these values."""
    source = {"html": html} if html else {"mjml": mjml}
    names = {part: f"t: {part}" for part in ("subject", *source)}
    texts = {"t: subject": "Hi", **{names[part]: text for part, text in source.items()}}
    return fill(Filling(names, texts, (), values))


def attributes(html: str, tag: str) -> list[dict[str, str | None]]:
    reader = _Elements()
    reader.feed(html)
    return [found for name, found in reader.attributes if name == tag]


@pytest.mark.parametrize(
    ("attributes", "alt"),
    [("", '""'), ('title="no alt = here > there"', '""'), ('alt="A &gt; B"', '"A &gt; B"'), ('alt=""', '""')],
)
def test_a_picture_of_mjml_without_words_has_an_empty_alt_and_one_with_words_has_those(
    attributes: str, alt: str
) -> None:
    made = filled(mjml=MJML.format(f'<mj-image src="https://s.example/a.png" {attributes} />'))
    assert re.findall(r' alt=("[^"]*")', made.html) == [alt]


def test_a_line_break_in_an_attribute_of_mjml_is_a_blank() -> None:
    made = filled(mjml=MJML.format('<mj-text><p style="\n  color: #fff;\r\n\tmargin: 0\n">x</p></mj-text>'))
    assert attributes(made.html, "p") == [{"style": "   color: #fff;  margin: 0 "}]


def test_styles_are_put_into_elements_whose_own_styles_have_line_breaks() -> None:
    head = '<mj-head><mj-style inline="inline">.a { margin: 0 }</mj-style></mj-head>'
    source = f'<mjml>{head}<mj-body><mj-raw><p class="a" style="\n color: red;\n">x</p></mj-raw></mj-body></mjml>'
    made = filled(mjml=source)
    assert made.failure == ""
    [paragraph] = attributes(made.html, "p")
    assert {part.strip() for part in (paragraph["style"] or "").split(";") if part.strip()} == {
        "margin: 0",
        "color: red",
    }


def test_an_empty_alternative_text_stays() -> None:
    made = filled(mjml=MJML.format('<mj-image alt="" src="a.png" /><mj-text><img alt="" src="b.png" /></mj-text>'))
    assert [picture["alt"] for picture in attributes(made.html, "img")] == ["", ""]


@given(
    st.text(st.characters(exclude_characters="<>&", exclude_categories=["Cc", "Cn", "Cs"]) | st.sampled_from("\t\n"))
)
def test_an_attribute_in_mjml_says_what_was_written(text: str) -> None:
    written = "".join(" " if character in "\t\n" else character for character in text)
    for quote in ("'", '"'):
        shown = text.replace(quote, "_")
        made = filled(mjml=MJML.format(f"<mj-text><b title={quote}{shown}{quote}>x</b></mj-text>"))
        assert attributes(made.html, "b") == [{"title": written.replace(quote, "_")}]


def test_elements_inside_one_another_are_counted_before_mrml_calls_itself_for_each() -> None:
    loop = "{% for _ in range(n) %}"
    nested = f"<mjml><mj-body>{loop}<mj-wrapper>{{% endfor %}}x{loop}</mj-wrapper>{{% endfor %}}</mj-body></mjml>"
    assert filled(mjml=nested, n=MAIL_DEPTH_MAX - 2).failure == ""
    assert filled(mjml=nested, n=MAIL_DEPTH_MAX - 1).failure == (
        f"what was filled in has more than {MAIL_DEPTH_MAX} elements inside one another"
    )


def test_elements_side_by_side_are_not_counted_as_nested() -> None:
    rows = '<mj-text>a<br>b<br/><img src="x"></mj-text>' * (MAIL_DEPTH_MAX // 2)
    assert filled(mjml=MJML.format(rows)).failure == ""


@pytest.mark.parametrize("style", ["color: #fff;; text-align", "color"])
def test_a_style_that_is_no_css_is_named(style: str) -> None:
    made = filled(html=f'<style>p {{ margin: 13px }}</style><p style="color: red">a</p><p style="{style}">b</p>')
    assert made.failure == (f"its styles cannot be put into the elements: style={style!r} is no CSS: End of input")


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1" + " + 1" * (MAIL_CHAIN_MAX + 1) + " }}",
        "{{ '}}' ~ 1" + " + 1" * (MAIL_CHAIN_MAX + 1),
        "{{ a" + ".b" * (MAIL_CHAIN_MAX + 1) + " ' }}",
        "{% if a %}" + "{% elif a %}" * (MAIL_CHAIN_MAX + 1) + "{% endif %}",
    ],
)
def test_a_chain_that_the_parser_would_follow_into_itself_is_no_template(source: str) -> None:
    assert isinstance(paths_in({"t": source}, "t"), Filled)


@pytest.mark.parametrize(
    "source",
    [
        "{% set prices = [" + "9.90, " * 3_000 + "] %}",
        "{% set texts = [" + "'a.b (c)', " * 3_000 + "] %}",
        "{{ a + 1 }}" * 3_000,
    ],
)
def test_a_long_source_without_a_chain_is_a_template(source: str) -> None:
    assert not isinstance(paths_in({"t": source}, "t"), Filled)


@pytest.mark.parametrize(
    ("value", "shown"), [("Ada", "Ada"), ("", "friend"), ("  ", "friend"), (None, "friend"), (0, "0"), (False, "False")]
)
def test_a_name_that_was_sent_empty_is_greeted_as_one_that_was_not_sent(value: object, shown: str) -> None:
    source = '<p>Hi {{ person.name | default("friend") }},</p>'
    assert filled(source, person={"name": value}).html == f"<p>Hi {shown},</p>"
    assert filled(source, person={}).html == "<p>Hi friend,</p>"


def test_what_default_puts_in_is_escaped_and_with_true_stands_for_0_as_well() -> None:
    source = '<p>{{ person.name | default(person.other) }} {{ points | d("no", true) }}</p>'
    assert filled(source, person={"other": "<b>"}, points=0).html == "<p>&lt;b&gt; no</p>"
