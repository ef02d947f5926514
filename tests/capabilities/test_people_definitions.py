"""What users declare of identifiers: what each mistake is told, what holds, and what the schema sees of it."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from threadline.capabilities.foundation.definitions import Definitions, schema
from threadline.capabilities.profile.people.definition import IDENTIFIERS_SECTION, JUNK, KINDS, rules
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Identifier
from threadline.kernel.identity import IdentifierKind, IdentityRules

DOCS = Path(__file__).parents[2] / "docs"


def declared(*texts: str) -> IdentityRules:
    definitions = Definitions((f"{chr(97 + n)}.yaml", text) for n, text in enumerate(texts))
    found = rules(definitions)
    definitions.refuse_unknown()
    return found


# Each case: what is written, and the whole message.
MISTAKES: dict[str, tuple[str, str]] = {
    "no mapping": (
        "identifiers:\n  - email",
        "2: `identifiers` must be a mapping, `key: value` on lines of its own",
    ),
    "an unknown option": (
        "identifiers:\n  email:\n    limitt: 3",
        "3: `identifiers`, 'email': unknown key 'limitt'; did you mean 'limit'?",
    ),
    "a limit in words": (
        "identifiers:\n  email: {limit: '3'}",
        "2: `identifiers`, 'email': `limit` must be a whole number from 1 to 64",
    ),
    "a limit of none": (
        "identifiers:\n  email: {limit: 0}",
        "2: `identifiers`, 'email': `limit` must be a whole number from 1 to 64",
    ),
    "a limit below none": (
        "identifiers:\n  email: {limit: -3}",
        "2: `identifiers`, 'email': `limit` must be a whole number from 1 to 64",
    ),
    "a limit that is a switch": (
        "identifiers:\n  email: {limit: true}",
        "2: `identifiers`, 'email': `limit` must be a whole number from 1 to 64",
    ),
    "a priority below the strongest": (
        "identifiers:\n  email: {priority: -5}",
        "2: `identifiers`, 'email': `priority` must be a whole number from 0 to 1,000",
    ),
    "a form": (
        "identifiers:\n  email: {normalise: upper}",
        "2: `identifiers`, 'email': `normalise` cannot be 'upper'; choose from email, phone, strip, whatsapp",
    ),
    "a switch": (
        "identifiers:\n  email: {identifying: 0}",
        "2: `identifiers`, 'email': `identifying` must be true or false",
    ),
    "a kind of nothing": (
        "identifiers:\n  email:",
        "2: `identifiers`, 'email' must be a mapping, `key: value` on lines of its own",
    ),
    "a kind twice": (
        "identifiers:\n  email: {limit: 1}\n  email: {limit: 2}",
        "3: `identifiers`: 'email' is listed twice; keep one",
    ),
    "a kind that is a number": (
        "identifiers:\n  5: {limit: 1}",
        "2: `identifiers`: a key must be text; write it in quotes",
    ),
    "a kind with a colon": (
        "identifiers:\n  'a:b': {limit: 1}",
        "2: `identifiers`: 'a:b' is not an identifier kind; write up to 64 printable characters without a colon",
    ),
    "junk that is no list": (
        "identifiers:\n  junk: nobody",
        "2: `identifiers`, 'junk' must be a list, such as [guest]",
    ),
    "junk that is no text": (
        "identifiers:\n  junk: [nobody,\n    [x]]",
        "3: `identifiers`, 'junk': `[1]` must be text",
    ),
    "somebody blocked without a kind": (
        "identifiers:\n  blocked: [info@example.com]",
        (
            "2: `identifiers`, 'blocked': `[0]` must be kind:value, such as email:info@example.com, "
            "and 'info@example.com' is not"
        ),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_cure(mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(InvalidDefinition) as caught:
        declared(text)
    assert str(caught.value) == f"a.yaml:{expected}"


@pytest.mark.parametrize("name", ["junk: [x]", "blocked: ['email:a@b.c']", "email: {limit: 1}"])
def test_what_two_files_declare_is_refused_and_none_is_lost(name: str) -> None:
    text = f"identifiers:\n  {name}"
    with pytest.raises(InvalidDefinition) as caught:
        declared(text, "features: {}", text)
    kind = name.partition(":")[0]
    assert "unknown key 'features'" in str(caught.value)
    assert f"c.yaml:2: `identifiers`: {kind!r} is already declared at a.yaml:2; keep one" in str(caught.value)


def test_the_list_of_junk_can_be_shortened() -> None:
    found = declared("identifiers: {not_junk: [guest, True, ID], junk: [walk-in]}")
    assert found.junk == (JUNK - {"guest", "true", "id"}) | {"walk-in"}
    assert found.normalise(Identifier("user_id", "Guest")) == Identifier("user_id", "Guest")
    assert found.normalise(Identifier("user_id", "null")) is None


def test_an_address_that_somebody_may_have_is_nobodys_junk() -> None:
    assert rules().normalise(Identifier("email", "Test@Example.com")) == Identifier("email", "test@example.com")


def test_files_are_read_together() -> None:
    found = declared(
        "identifiers: {junk: [Nobody, ~, 0123, no], email: {limit: 1, identifying: no}}",
        "identifiers: {blocked: ['phone:+39 06 1234', 'email:null'], card: {priority: 7, shared: true}}",
    )
    assert found.junk == JUNK | {"nobody", "~", "0123", "no"}
    assert found.kind("email") == IdentifierKind("email", priority=20, limit=1, normalise="email", identifying=False)
    assert found.kind("card") == IdentifierKind("card", priority=7, shared=True)
    assert found.blocked == {Identifier("phone", "+39061234")}
    assert not found.identifies(Identifier("phone", "+39061234"))
    assert {name: found.kind(name) for name in found.kinds if name not in ("email", "card")} == {
        kind.name: kind for kind in KINDS if kind.name != "email"
    }


# --- the schema -------------------------------------------------------------------------------------

SCHEMA = jsonschema_rs.Draft202012Validator(schema([IDENTIFIERS_SECTION]))
LOST = {"a kind twice", "a kind that is a number"}
"""What YAML has lost before an editor looks."""


@pytest.mark.parametrize("mistake", sorted(MISTAKES.keys() - LOST))
def test_the_schema_refuses_what_an_editor_can_see(mistake: str) -> None:
    assert not SCHEMA.is_valid(yaml.safe_load(MISTAKES[mistake][0]))


def test_what_the_page_declares_is_read() -> None:
    page = (DOCS / "people.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    found = declared(block)
    assert not found.identifies(Identifier("email", "info@shop.example"))
    assert found.normalise(Identifier("user_id", "Walk-In")) is None
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| `(\w+)` \|$", page, re.M)
    assert rows == [(kind.name, str(kind.priority), str(kind.limit), kind.normalise) for kind in KINDS]


def test_a_kind_is_personal_by_its_form_or_by_declaration() -> None:
    found = declared("identifiers: {card: {personal: true}, fax: {normalise: phone}, seat: {}}")
    personal = {name for name, kind in found.kinds.items() if kind.is_personal}
    assert personal == {"email", "phone", "whatsapp", "ip_address", "card", "fax"}
