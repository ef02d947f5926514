"""What is remarked on in a mail, and what is not; tests of templates; drafts filled in."""

from __future__ import annotations

import pytest

from tests.capabilities.mail_stage import MailStage
from threadline.kernel.errors import InvalidValue, NotFound

MAIL = """
mail:
  senders: {shop: {from: hello@shop.example}}
  templates:
    t:
      subject: SUBJECT
      transactional: true
      html: |
        <p>Some words that are enough to be read by anybody.</p>
        HTML
"""


def remarks(html: str = "", subject: str = "Hello") -> list[str]:
    """What a preview remarks on."""
    stage = MailStage(MAIL.replace("SUBJECT", subject).replace("HTML", html))
    warnings: list[str] = stage.ask("mail_preview", template="t").warnings
    return warnings


@pytest.mark.parametrize(
    ("html", "remark"),
    [
        ("<a href=''>here</a>", "the link on 'here' leads nowhere"),
        ("<a href='#'>here</a>", "leads nowhere"),
        ("<a href='shop.example/x'>here</a>", "is no whole address; begin it with https://"),
        ("<a href='javascript:alert(1)'>here</a>", "is no whole address"),
        ("<a href='https://'>here</a>", "is no address"),
        ("<a href='https://shop.example/a b'>here</a>", "is no address"),
        ("<a href='https://[shop'>here</a>", "is no address"),
        ("<a href='http://shop.example'>here</a>", "is not encrypted; write https://"),
        ("<a href='http://localhost:8000/x'>here</a>", "is of a machine that nobody else reaches"),
        ("<a href='https://10.0.0.7/x'>here</a>", "is of a machine that nobody else reaches"),
        ("<a href='https://bit.ly/x'>here</a>", "hides where it leads; filters punish bit.ly"),
        ("<a href='https://evil.example/x'>shop.example</a>", "leads to evil.example; filters take that for fraud"),
        ("<a href='https://evil.example/x'>https://shop.example/x</a>", "filters take that for fraud"),
        ("<img src='/a.png' alt='x'>", "the picture '/a.png' has no whole address"),
        ("<img src='http://shop.example/a.png' alt='x'>", "is not encrypted"),
        ("<img src='data:image/png;base64,AA' alt='x'>", "is in the mail itself"),
        ("<img src='https://shop.example/a.png'>", "its pictures have no `alt`"),
        ("<img src='https://shop.example/a.png' alt=''>", "a picture has an empty `alt`"),
    ],
)
def test_what_is_likely_not_meant_is_remarked_on(html: str, remark: str) -> None:
    assert [remark in made for made in remarks(html)] == [True], remarks(html)


@pytest.mark.parametrize(
    "html",
    [
        "<a href='https://shop.example/x?a=1'>here</a>",
        "<a href='https://shop.example/x'>shop.example</a>",
        "<a href='https://www.shop.example/x'>shop.example</a>",
        "<a href='https://shop.example/x'>www.shop.example/x</a>",
        "<a href='mailto:a@shop.example'>write</a>",
        "<a href='#top'>up</a>",
        "<a href='https://shop.example'>Version 2.0</a>",
        "<a href='{{ unsubscribe_url }}'>Unsubscribe</a>",
        "<img src='https://shop.example/a.png' alt='A shoe'>",
    ],
)
def test_what_is_right_is_not_remarked_on(html: str) -> None:
    assert remarks(html) == []


@pytest.mark.parametrize(
    ("subject", "remark"),
    [("BUY IT NOW", "in capitals alone"), ("Hello!!", "several exclamation marks"), ("x" * 71, "has 71 characters")],
)
def test_a_subject_that_is_punished_is_remarked_on(subject: str, remark: str) -> None:
    assert [remark in made for made in remarks(subject=subject)] == [True]


@pytest.mark.parametrize("subject", ["NASA 7", "Hello!", "ÄRGER? Nein", "x" * 70])
def test_a_subject_that_is_right_is_not_remarked_on(subject: str) -> None:
    assert remarks(subject=subject) == []


def test_a_mail_of_pictures_alone_is_remarked_on() -> None:
    picture = "<img src='https://shop.example/a.png' alt='A'>"
    mail = MAIL.replace("<p>Some words that are enough to be read by anybody.</p>", picture).replace("HTML", "")
    stage = MailStage(mail)
    assert ["nearly pictures alone" in made for made in stage.ask("mail_preview", template="t").warnings] == [True]


SPOKEN = """
mail:
  senders: {shop: {from: hello@shop.example}}
  templates:
    hello:
      subject: "Hello {{ person.traits.first_name }}, {{ code }}"
      text: x
      topic: news
      variables: {code: {example: A1}}
      languages: {fallback: en, also: {de: {subject: Hallo, text: y}}}
"""


def test_a_test_goes_to_one_address_is_marked_and_is_in_no_history() -> None:
    stage = MailStage(SPOKEN)
    stage.person("ada", first_name="Ada")
    stage.ask("mail_test", template="hello", address="colleague@shop.example", person="user_id:ada")
    stage.ask("mail_test", template="hello", address="colleague@shop.example", person="user_id:ada", language="de")
    stage.work()
    assert [(message["subject"], message["to"]) for message in stage.box.messages] == [
        ("[Test] Hello Ada, A1", "colleague@shop.example"),
        ("[Test] Hallo", "colleague@shop.example"),
    ]
    assert stage.ask("mail_history", id="user_id:ada").mails == []
    assert not stage.ask("mail_sent", id="user_id:ada", template="hello").sent


def test_a_test_of_nobodys_data_or_of_what_is_not_there_is_refused() -> None:
    stage = MailStage(SPOKEN)
    with pytest.raises(NotFound, match="nobody here has the address"):
        stage.ask("mail_test", template="hello", address="colleague@shop.example")
    stage.person("ada", first_name="Ada")
    for wrong in ({"template": "hallo"}, {"language": "fr"}, {"address": "no address"}):
        given = {"template": "hello", "address": "a@shop.example", "person": "user_id:ada", **wrong}
        with pytest.raises((NotFound, InvalidValue)):
            stage.ask("mail_test", **given)
    stage.work()
    assert stage.box.sent == []
