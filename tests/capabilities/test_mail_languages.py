"""Languages of a template: who gets which, in previews, in what is sent, and in what was sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.mail_stage import MailStage
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.reach.mail.templates import language_of
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition, InvalidValue

SHOP = """
mail:
  senders: {shop: {from: hello@shop.example}}
  templates:
    welcome:
      subject: Welcome
      text: "Hello {{ person.traits.first_name | default('you') }}"
      topic: news
      languages:
        trait: locale
        fallback: en
        also:
          de: {subject: Willkommen, text: "Hallo {{ unsubscribe_url }}"}
          pt-BR: {subject: Bem-vindo, blocks: [{text: "Oi {{ person.id }}"}]}
"""
TAGS = st.from_regex(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("trait", "subject"),
    [
        ("de", "Willkommen"),
        ("de-AT", "Willkommen"),
        ("de_AT.UTF-8", "Willkommen"),
        (" DE ", "Willkommen"),
        ("pt-br", "Bem-vindo"),
        ("pt", "Welcome"),
        ("en-GB", "Welcome"),
        ("fr", "Welcome"),
        ("", "Welcome"),
        (None, "Welcome"),
        (7, "Welcome"),
        (["de"], "Welcome"),
    ],
)
def test_a_person_gets_the_language_of_their_trait_and_else_the_fallback(trait: object, subject: str) -> None:
    stage = MailStage(SHOP)
    stage.person("ada", **({} if trait is None else {"locale": trait}))
    assert stage.ask("mail_preview", template="welcome", person="user_id:ada").subject == subject
    stage.send("welcome")
    assert [message["subject"] for message in stage.box.messages] == [subject]


@given(st.lists(TAGS, unique_by=str.casefold), TAGS)
def test_the_language_is_the_longest_that_begins_the_tag(known: list[str], tag: str) -> None:
    begin = [language for language in known if f"{tag}-".casefold().startswith(f"{language}-".casefold())]
    assert language_of(tag, known) == max(begin, key=len, default="")
    assert language_of(tag.replace("-", "_").upper(), known) == language_of(tag, known)


def test_a_preview_shows_each_language_and_names_one_that_is_missing() -> None:
    stage = MailStage(SHOP)
    made = {
        language: stage.ask("mail_preview", template="welcome", language=language).subject
        for language in ("", "en", "de", "pt-BR")
    }
    assert made == {"": "Welcome", "en": "Welcome", "de": "Willkommen", "pt-BR": "Bem-vindo"}
    with pytest.raises(InvalidValue, match="not there in 'fr'"):
        stage.ask("mail_preview", template="welcome", language="fr")
    [template] = stage.ask("mail_templates").templates
    assert template.languages == ["en", "de", "pt-BR"]


def test_only_the_language_that_is_filled_in_says_what_is_read() -> None:
    stage = MailStage(SHOP)
    warned = []
    for language in ("en", "de"):
        warnings = stage.ask("mail_preview", template="welcome", language=language).warnings
        warned.append(any("unsubscribe_url" in warning for warning in warnings))
    assert warned == [True, False]


def test_a_mail_is_shown_later_in_the_language_in_which_it_was_sent() -> None:
    stage = MailStage(SHOP)
    stage.person("ada", locale="de")
    message = stage.send("welcome")
    stage.person("ada", locale="fr")
    shown = stage.ask("mail_as_sent", id="user_id:ada", message=message)
    assert (shown.subject, shown.text[:5]) == ("Willkommen", "Hallo")
    [(_, properties)] = stage.outcomes()
    assert properties["language"] == "de"


def test_a_template_without_languages_has_the_version_that_it_had() -> None:
    plain = SHOP[: SHOP.index("      languages:")]
    without, with_languages = (MailStage(text).ask("mail_templates").templates[0].version for text in (plain, SHOP))
    assert without == "5b31aa58eac7ca"
    assert with_languages != without


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("de: {subject: Willkommen, ", "de: {"), "shop.yaml:13: `mail`: `templates.welcome.languages.also.de` needs"),
        (("pt-BR:", "EN:"), "is there already; keep one"),
        (("pt-BR:", "brazilian:"), "must be a language such as en or pt-BR"),
        (("person.id", "prson.id"), "shop.yaml:14: template 'welcome': nothing is known under 'prson'"),
        (("fallback: en", "trait2: x"), "unknown key 'trait2'"),
    ],
)
def test_a_mistake_in_a_language_names_its_line(change: tuple[str, str], problem: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue.declared(Definitions([("shop.yaml", SHOP.replace(*change))]), rules())
    assert problem in str(raised.value)
