"""Operations of consent: what is asked for is recorded once, and an address is the same wherever it is asked about."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.asked import Asked
from threadline.app import composition
from threadline.capabilities.reach.consent.addresses import masked
from threadline.kernel.address import normal_address
from threadline.kernel.errors import InvalidDefinition, InvalidValue, NotFound
from threadline.surfaces.cli.program import run

DEFINITIONS = """
consent:
  topics:
    news: {title: News, default: opted_in}
    club: {confirm: welcome}
"""


@pytest.fixture
def asked() -> Asked:
    made = Asked(definitions=DEFINITIONS)
    made.tell("signed_up", user_id="ada", email="Ada@Example.com")
    return made


def standing(asked: Asked, **params: Any) -> dict[str, str]:
    answer = asked.ask("consent_of", id="ada", **params)
    return {each["topic"]: each["status"] for each in answer["subscriptions"]}


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (" Ada.Lovelace+x@Example.COM. ", "ada.lovelace+x@example.com"),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@straße.example", "ada@xn--strae-oqa.example"),  # and not strasse.example, which is another owner's
        ("JOSÉ@example.com", "josé@example.com"),
        ("Jose\u0301@example.com", "josé@example.com"),
        ("ada@bu\u0308cher.example\u200b", "ada@xn--bcher-kva.example"),
        ("\u202aada@example.com\u202c", "ada@example.com"),
        ('"a b"@example.com', ""),
        ("ada@localhost", ""),
        ("<ada@example.com>", ""),
        ("ada@example.com;", ""),
        ("mailto:ada@example.com", ""),
        ("'ada@example.com'", ""),
        ("ada@example.com, bob@example.com", ""),
        ("ann;ann@example.com;x", ""),
        ("ada", ""),
        ("ada@", ""),
        ("a b@example.com", ""),
        ("a@b@c", ""),
        ("a\n@b.c", ""),
        (None, ""),
        (7, ""),
        ("a" * 250 + "@b.co", ""),
    ],
)
def test_an_address_has_one_normal_form(text, normal):
    assert normal_address(text) == normal
    assert normal_address(normal) == normal


@pytest.mark.parametrize("address", ["ada@example.com", "a@b.c", "x@localhost", "josé@bücher.example"])
def test_a_masked_address_keeps_three_signs_at_most(address):
    local, _, domain = address.partition("@")
    assert masked(address).startswith(f"{local[0]}•••@{domain[0]}•••")
    assert len(local) == 1 or local not in masked(address)


def test_topics_are_listed_in_the_order_of_the_page(asked):
    topics = asked.ask("consent_topics")["topics"]
    assert [(each["name"], each["title"], each["default"], each["double_opt_in"]) for each in topics] == [
        ("news", "News", "opted_in", False),
        ("club", "Club", "opted_out", True),
    ]


def test_a_change_is_recorded_and_its_repetition_is_not(asked):
    assert standing(asked) == {"news": "opted_in", "club": "opted_out"}
    given = {"id": "ada", "unsubscribe": ["news"], "subscribe": ["club"], "request": "form-1"}
    answer = asked.ask("consent_change", **given)
    assert [each["status"] for each in answer["receipts"]] == ["accepted", "accepted"]
    assert answer["address"] == "ada@example.com"
    assert standing(asked) == {"news": "unsubscribed", "club": "unconfirmed"}
    assert [each["status"] for each in asked.ask("consent_change", **given)["receipts"]] == ["duplicate", "duplicate"]
    asked.ask("consent_change", id="ada", subscribe=["club"], confirmed=True)
    assert standing(asked)["club"] == "subscribed"
    asked.ask("consent_change", id="ada", everything=True)
    assert standing(asked) == {"news": "unsubscribed", "club": "unsubscribed"}


def test_a_change_that_contradicts_itself_or_names_no_topic_is_refused(asked):
    for given in ({"subscribe": ["news"], "unsubscribe": ["news"]}, {"subscribe": ["news"], "everything": True}):
        with pytest.raises(InvalidValue, match="both"):
            asked.ask("consent_change", id="ada", **given)
    with pytest.raises(InvalidValue, match="did you mean 'news'"):
        asked.ask("consent_change", id="ada", subscribe=["newz"])
    with pytest.raises(InvalidValue, match="not a mail address"):
        asked.ask("consent_of", id="ada", address="nobody")


def test_a_site_may_subscribe_its_person_and_nobody_elses_address(asked):
    asked.tell(
        "subscribed", user_id="eve", properties={"topic": "club", "address": "ada@example.com", "confirmed": True}
    )
    assert standing(asked)["club"] == "opted_out"
    asked.tell("unsubscribed", user_id="eve", properties={"address": "ada@example.com"})
    assert standing(asked)["news"] == "opted_in"
    asked.tell("unsubscribed", user_id="ada", properties={})
    assert standing(asked) == {"news": "unsubscribed", "club": "unsubscribed"}


def test_a_subscription_with_double_opt_in_asks_by_mail_once(asked):
    def mails() -> int:
        events = asked.engine.store.scan("outbox")
        return len(events)

    asked.tell("subscribed", user_id="ada", properties={"topic": "news"})
    assert mails() == 0
    asked.tell("subscribed", user_id="ada", properties={"topic": "club"}, historical=True, at=asked.now - 10**9)
    assert mails() == 0
    asked.tell("subscribed", user_id="ada", properties={"topic": "club"})
    assert mails() == 1
    asked.ask("consent_change", id="ada", subscribe=["club"], confirmed=True)
    asked.tell("subscribed", user_id="ada", properties={"topic": "club"})
    assert mails() == 1


def test_a_suppressed_address_is_found_listed_and_lifted_with_a_reason_only(asked):
    with pytest.raises(NotFound):
        asked.ask("suppression_get", address="ada@example.com")
    added = asked.ask("suppression_add", address="ADA@example.com", note="by phone")
    assert (added["address"], added["reason"], added["by"], added["note"]) == (
        "ada@example.com",
        "manual",
        "shop",
        "by phone",
    )
    assert asked.ask("suppression_add", address="ada@example.com", reason="complaint") == added
    assert asked.ask("suppression_get", address="ada@EXAMPLE.com") == added
    assert asked.ask("suppression_list") == {"addresses": [added], "next": ""}
    assert asked.ask("consent_of", id="ada")["suppressed"] == "manual"
    for reason in ("", "   "):
        with pytest.raises(InvalidValue):
            asked.ask("suppression_lift", address="ada@example.com", reason=reason)
    asked.tell("address_unsuppressed", user_id="ada", properties={"address": "ada@example.com", "reason": "please"})
    assert asked.ask("suppression_get", address="ada@example.com") == added
    lifted = asked.ask("suppression_lift", address="ada@example.com", reason="back")
    assert lifted == {"address": "ada@example.com", "was": "manual"}
    assert asked.ask("suppression_list") == {"addresses": [], "next": ""}
    assert asked.ask("suppression_import", addresses=["ada@example.com"])["added"] == 1
    assert asked.ask("suppression_get", address="ada@example.com")["reason"] == "import"


def test_an_imported_list_tells_what_it_added_and_which_lines_are_wrong(asked):
    addresses = ["a@x.com", "nonsense", "A@X.com", "info@x.com", "", "guest@x.com"]
    answer = asked.ask("suppression_import", addresses=addresses, note="old system")
    assert (answer["added"], answer["already"]) == (3, 1)
    assert [(each["number"], each["text"]) for each in answer["wrong"]] == [(2, "nonsense"), (5, "")]
    assert asked.ask("suppression_import", addresses=addresses)["added"] == 0


def test_an_address_that_identifies_nobody_can_be_suppressed():
    asked = Asked(identifiers={"blocked": ["email:info@example.com"]})
    asked.ask("suppression_add", address="info@example.com")
    assert asked.ask("suppression_get", address="info@example.com")["reason"] == "manual"


def test_pages_of_the_list_hold_every_address_once(asked):
    everybody = {f"user{number}@example.com" for number in range(60)}
    asked.ask("suppression_import", addresses=sorted(everybody))
    for address in sorted(everybody)[:7]:
        asked.ask("suppression_lift", address=address, reason="back")
        everybody.discard(address)
    found: list[str] = []
    cursor = ""
    while True:
        page = asked.ask("suppression_list", limit=7, cursor=cursor)
        found += [each["address"] for each in page["addresses"]]
        cursor = page["next"]
        if not cursor:
            break
    assert sorted(found) == sorted(everybody)
    assert asked.ask("suppression_list", workspace="other")["addresses"] == []


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("consent: {topics: {News: {}}}", "name of lower-case letters"),
        ("consent: {topics: {news: {default: in}}}", "cannot be 'in'"),
        ("consent: {topics: {news: {default: opted_in, confirm: welcome}}}", "sends before anybody has confirmed"),
        ("consent: {texts: {titel: x}}", "did you mean 'title'"),
        ("consent: {topics: {news: {titel: x}}}", "unknown key 'titel'"),
    ],
)
def test_a_mistake_is_refused_with_its_line(written, problem):
    with pytest.raises(InvalidDefinition, match=problem) as refused:
        Asked(definitions=written)
    assert "threadline.yaml:1" in str(refused.value)


def test_the_command_line_imports_and_exports_a_list(tmp_path: Path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str, code: int = 0) -> tuple[str, str]:
        capfd.readouterr()
        assert run(composition, ["suppression", *arguments, "--file", "shop.db"]) == code
        return tuple(capfd.readouterr())

    rows = [f"{number},user{number}@example.com" for number in range(1_500)]
    Path("old.csv").write_text("\n".join(["id,Email", *rows, "9,nonsense", '10,"two\nlines"', ""]) + "\n")
    out, err = called("import", "old.csv", "--note", "old system")
    assert out.endswith("column 2, 'Email'.\n1,500 addresses suppressed, 0 already were, 2 wrong\n")
    assert "line 1,502: 'nonsense' is not a mail address" in err
    exported = list(csv.DictReader(io.StringIO(called("export")[0])))
    assert len(exported) == 1_500
    assert {(each["reason"], each["note"], each["by"]) for each in exported} == {("import", "old system", "cli")}
    called("export", "new.csv")
    assert called("import", "new.csv")[0].endswith("\n0 addresses suppressed, 1,500 already were, 0 wrong\n")
    Path("plain.txt").write_text("ada@example.com\n\nbob@example.com\n")
    assert called("import", "plain.txt")[0].startswith("2 addresses suppressed")
    Path("bad.txt").write_text("x\ny\n")
    called("import", "bad.txt", code=1)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("\ufeffName;E-Mail;Grund\r\nAnn;ann@x.example;x\r\nBob;bob@x.example;y\r\n", "column 2, 'E-Mail'"),
        ("sep=;\r\nName;E-Mail\r\nAnn;ann@x.example\r\nBob;bob@x.example\r\n", "column 2, 'E-Mail'"),
        ("name\temail\nAnn, of X\tann@x.example\nBob\tbob@x.example\n", "column 2, 'email'"),
        ("Kunde;Kontakt\nAnn;ann@x.example\nBob;bob@x.example\n", "column 2"),
        ("ann@x.example;x\nbob@x.example;y\n", "column 1"),
        ('"Email Address","First Name"\n"ann@x.example","Ann; or so"\n"bob@x.example",\n', "column 1, 'Email Address'"),
    ],
)
def test_the_column_of_addresses_is_found_whatever_separates_it_and_named(text, column, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("list.csv").write_text(text, encoding="utf-8", newline="")
    assert run(composition, ["suppression", "import", "list.csv", "--file", "shop.db"]) == 0
    assert capfd.readouterr().out == (
        f"The addresses are those of {column}.\n2 addresses suppressed, 0 already were, 0 wrong\n"
    )
