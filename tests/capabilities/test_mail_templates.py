"""Templates: what is wrong is told with file and line when they are loaded, and what is right is filled in safely."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capabilities.mail_stage import MailStage
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition, NotFound

SENDERS = "mail:\n  senders: {shop: {from: hello@shop.example}}\n  templates:\n"


def mistakes(yaml: str, folder: Path) -> str:
    definitions = Definitions([(str(folder / "shop.yaml"), yaml)])
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue.declared(definitions, rules())
    return str(raised.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "subject: Hi\n      text: 'x {{ person.trait.name }}'",
            "shop.yaml:6: template 'welcome': 'person' has no 'trait'; did you mean 'traits'?",
        ),
        (
            "subject: Hi\n      text: |\n        one\n        {{ cod }}\n      variables: {code: {}}",
            "shop.yaml:8: template 'welcome': nothing is known under 'cod'; did you mean 'code'?",
        ),
        (
            "subject: '{{ unsubscribe }}'\n      text: x",
            "shop.yaml:5: template 'welcome': nothing is known under 'unsubscribe'; did you mean 'unsubscribe_url'?",
        ),
        ("subject: Hi\n      text: '{{ person.id'", "shop.yaml:6: template 'welcome': unexpected end of input"),
        (
            "subject: Hi\n      html: mails/none.html",
            "shop.yaml:6: template 'welcome': file 'mails/none.html' cannot be read",
        ),
        ("subject: Hi\n      html: ../outside.html", "it lies outside the folder of the definitions"),
        (
            "subject: Hi\n      html: bad.html",
            "bad.html:2: template 'welcome': nothing is known under 'prson'; did you mean 'person'?",
        ),
        ("subject: Hi\n      html: inner.html", "layout.html:3: template 'welcome': nothing is known under 'titel'"),
        ("subject: Hi\n      html: dynamic.html", "dynamic.html:1: `include` needs the name of a file in quotes"),
        (
            "subject: Hi\n      mjml: <mjml><mj-body><mj-txt>x</mj-txt></mj-body></mjml>",
            "shop.yaml:6: template 'welcome': MJML has no <mj-txt>; did you mean <mj-text>?",
        ),
        (
            "subject: Hi\n      html: style.html",
            "style.html:3: template 'welcome': style='color red' is no CSS: Unexpected token: Ident(\"red\")",
        ),
        ("subject: Hi\n      mjml: style.mjml", "style.mjml:2: template 'welcome': style='x' is no CSS: End of input"),
        ("subject: Hi\n      html: <p>x</p>\n      mjml: <mjml></mjml>", "has both `html` and `mjml`; keep one"),
        ("subject: Hi", "shop.yaml:4: `mail`: `templates.welcome`: needs `blocks`, `html`, `mjml` or `text`"),
        ("subject: Hi\n      text: x\n      sender: shp", "there is no sender 'shp'; did you mean 'shop'?"),
        ("subject: Hi\n      text: x\n      variables: {person: {}}", "is something that every template sees"),
        ("subject: Hi\n      text: '{{ features.monetary_totl }}'", "features has no 'monetary_totl'"),
        ("subject: Hi\n      text: x\n      topic: nws", "there is no topic 'nws'; did you mean 'news'?"),
    ],
)
def test_a_mistake_names_file_line_and_the_way_out(template: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<p>\n{{ prson.id }}</p>")
    (tmp_path / "layout.html").write_text("<html>\n<title>\n{{ titel }}</title>{% block body %}{% endblock %}")
    (tmp_path / "inner.html").write_text("{% extends 'layout.html' %}{% block body %}x{% endblock %}")
    (tmp_path / "style.html").write_text(
        "<style>\np { margin: 0 }</style>{# < style='b' #}\n<p style='color red'>x</p>"
    )
    mjml = (
        "<mjml><mj-head><mj-style inline='inline'>p {{ margin: 0 }}</mj-style></mj-head><mj-body>\n{}</mj-body></mjml>"
    )
    (tmp_path / "style.mjml").write_text(mjml.format("<mj-raw><p style='x'></p></mj-raw>"))
    (tmp_path / "dynamic.html").write_text("{% include person.id %}")
    yaml = f"{SENDERS}    welcome:\n      {template}\nconsent: {{topics: {{news: {{title: News}}}}}}\n"
    assert message in mistakes(yaml, tmp_path)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("senders: {shop: {from: not an address}}", "is not a mail address"),
        ('senders: {shop: {from: a@b.example, name: "x\\r\\nBcc: c@d.example"}}', "a name without line breaks"),
        ("senders: {shop: {from: a@b.example, reply_to: c@d.example, replies: e@f.example}}", "keep one"),
        ("provider: {url: 'http://relay'}", "must be an address such as smtp://"),
        ("quiet_hours: {from: '21:00', to: '21:00'}", "no mail would ever be sent"),
        ("quiet_hours: {from: 21:00, to: '08:00'}", "a time of day in quotes"),
        ("senders: {shop: {from: a@b.example, domain: 'b.example> x'}}", "a domain such as"),
        ("timezone: Europe/Berln", "a time zone such as"),
        ("caps: [{mails: 0, per: 7d}]", "caps[0].mails"),
    ],
)
def test_a_mistake_in_the_section(section: str, message: str, tmp_path: Path) -> None:
    assert message in mistakes(f"mail:\n  {section}\n", tmp_path)


def test_layouts_includes_and_parts_of_all_kinds(tmp_path: Path) -> None:
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails" / "layout.html").write_text(
        "<style>a { color: red } @media (max-width: 9px) { a { color: blue } }</style>"
        "{% block body %}{% endblock %}{% include 'parts/foot.html' %}"
    )
    (tmp_path / "mails" / "parts").mkdir()
    (tmp_path / "mails" / "parts" / "foot.html").write_text(
        "<a href='{{ unsubscribe_url }}'>Bye {{ person.traits.name }}</a>"
    )
    (tmp_path / "mails" / "hello.html").write_text(
        "{% extends 'layout.html' %}{% block body %}<b>{{ code }}</b>{% endblock %}"
    )
    (tmp_path / "mails" / "hello.txt").write_text("{{ code }} for {{ person.traits.name }}")
    yaml = f"""{SENDERS}    hello:
      subject: "{{{{ code }}}} & {{{{ person.traits.name }}}}"
      html: mails/hello.html
      text: mails/hello.txt
      variables: {{code: {{}}}}
    pretty:
      subject: Pretty
      mjml: |
        <mjml><mj-body><mj-section><mj-column>
        {{% for n in names %}}<mj-text>{{{{ n }}}}</mj-text>{{% endfor %}}
        </mj-column></mj-section></mj-body></mjml>
      variables: {{names: {{default: [a]}}}}
"""
    stage = MailStage(yaml, tmp_path)
    stage.person(name="<Ada & Co>")
    stage.send("hello", variables={"code": "<1>"})
    stage.send("pretty", variables={"names": ["<x>", "y"]})
    hello, pretty = stage.box.messages
    assert str(hello["Subject"]) == "<1> & <Ada & Co>"
    html, text = hello.get_body(("html",)), hello.get_body(("plain",))
    assert html is not None
    assert text is not None
    assert "<b>&lt;1&gt;</b>" in html.get_content()
    assert "Bye &lt;Ada &amp; Co&gt;</a>" in html.get_content()
    assert 'style="color: red;"' in html.get_content()
    assert "@media" in html.get_content()
    assert text.get_content().strip() == "<1> for <Ada & Co>"
    assert [line for line in pretty.get_body(("plain",)).get_content().splitlines() if line] == ["<x>", "y"]  # type: ignore[union-attr]
    assert "fonts.googleapis" not in str(pretty)


@pytest.mark.parametrize(
    "html",
    [
        "<p style='color red'>x</p>",
        "<style>p { margin: 0 }</style><p style='{{ person.traits.style }} red'>x</p>",
        "<style>p { margin: 0 }</style>{# <p style='x'> #}<!-- <p style='x'> --><p>write style='x'</p>",
        "<style>p { margin: 0 }</style><p style='color: red;\n  margin: 0'>x</p>",
    ],
)
def test_no_style_is_a_mistake_that_is_not_put_into_elements_not_known_yet_or_no_attribute(
    html: str, tmp_path: Path
) -> None:
    (tmp_path / "fine.html").write_text(html)
    yaml = f"{SENDERS}    welcome: {{subject: Hi, html: fine.html}}\n"
    Catalogue.declared(Definitions([(str(tmp_path / "shop.yaml"), yaml)]), rules())


def test_a_version_shows_an_old_mail_as_it_looked(tmp_path: Path) -> None:
    (tmp_path / "hello.html").write_text("<p>old {{ code }}</p>")
    yaml = f"{SENDERS}    hello: {{subject: Hi, html: hello.html, variables: {{code: {{example: x}}}}}}\n"
    stage = MailStage(yaml, tmp_path)
    old = stage.ask("mail_templates").templates[0].version
    (tmp_path / "hello.html").write_text("<p>new {{ code }}</p>")
    again = MailStage(yaml + "\n", tmp_path)
    from threadline.engine.engine import Engine

    engine = Engine(stage.engine.store, again.engine.catalogue, lambda: stage.now)
    again.engine = engine
    shown = again.ask("mail_template", template="hello")
    assert [each.version for each in shown.versions] == [shown.version, old]
    assert again.ask("mail_template", template="hello", version=old).sources == {
        "hello: subject": "Hi",
        "hello.html": "<p>old {{ code }}</p>",
    }
    assert again.ask("mail_preview", template="hello", version=old).html == "<p>old x</p>"
    assert again.ask("mail_preview", template="hello").html == "<p>new x</p>"
    with pytest.raises(NotFound, match="never had the version"):
        again.ask("mail_template", template="hello", version="0" * 14)


def test_a_text_in_the_definitions_includes_files_beside_them(tmp_path: Path) -> None:
    (tmp_path / "foot.txt").write_text("Bye, {{ person.id }}")
    stage = MailStage(f"{SENDERS}    hello: {{subject: Hi, text: \"Hello. {{% include 'foot.txt' %}}\"}}\n", tmp_path)
    assert stage.ask("mail_preview", template="hello").text == f"Hello. Bye, {'0' * 32}"


def test_a_loop_without_end_is_no_mail() -> None:
    loops = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}"
    yaml = f"{SENDERS}    hello: {{subject: Hi, text: '{loops}'}}\n"
    stage = MailStage(yaml)
    stage.person()
    stage.send("hello")
    [(type, properties)] = stage.outcomes()
    assert (type, properties["reason"]) == ("threadline.effect_parked", "template_failed")
    assert "OutOfFuel" in properties["details"]
