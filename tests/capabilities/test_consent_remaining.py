"""Suppressions and unsubscriptions outlive the erasure of whoever they were about, without the address."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.reach.consent.refusal import Mailing, refusals
from threadline.engine.maintenance.dump import dump
from threadline.kernel.errors import NotFound
from threadline.kernel.store import scan_pages

ADA = "ada@example.com"
TOPICS = "consent: {topics: {news: {default: opted_in}, offers: {default: opted_out}}}"


def refused(asked: Asked, topic: str = "news", *, transactional: bool = False) -> str:
    asked.now += 1
    person = asked.engine.reader.person("default", f"email:{ADA}")
    view = asked.engine.reader.as_of(person, asked.now)
    return refusals(asked.engine, [Mailing("default", ADA, topic, transactional, view)])[0]


def erased_and_back(asked: Asked) -> None:
    asked.ask("people_erase", id=f"email:{ADA}")
    asked.tell("identify", user_id="ada", email=ADA)


@pytest.fixture
def asked() -> Asked:
    asked = Asked(definitions=TOPICS)
    asked.tell("identify", user_id="ada", email=ADA)
    return asked


def test_a_suppressed_address_of_somebody_erased_gets_no_mail_and_can_be_lifted(asked: Asked) -> None:
    asked.ask("suppression_add", address=ADA, reason="complaint", note="by phone")
    erased_and_back(asked)
    assert refused(asked, transactional=True) == "suppressed:complaint"
    shown = asked.ask("suppression_get", address=ADA)
    assert (shown["reason"], shown["note"], shown["event"]) == ("complaint", "", "")
    assert asked.ask("suppression_list")["addresses"] == []
    asked.ask("suppression_lift", address=ADA, reason="asked for it")
    assert refused(asked, transactional=True) == ""
    # Erased again, the last word holds; suppressed again, that one does.
    erased_and_back(asked)
    assert refused(asked, transactional=True) == ""
    asked.ask("suppression_add", address=ADA, reason="bounce")
    erased_and_back(asked)
    erased_and_back(asked)
    assert refused(asked, transactional=True) == "suppressed:bounce"
    asked.ask("suppression_lift", address=ADA, reason="asked for it")
    assert refused(asked, transactional=True) == ""


def test_an_unsubscription_of_somebody_erased_holds_until_the_next_subscription(asked: Asked) -> None:
    asked.tell("unsubscribed", user_id="ada", properties={"topic": "news"})
    assert (refused(asked), refused(asked, "offers")) == ("unsubscribed", "opted_out")
    erased_and_back(asked)
    assert (refused(asked), refused(asked, "offers")) == ("unsubscribed", "opted_out")
    asked.tell("subscribed", user_id="ada", email=ADA, properties={"topic": "news"})
    assert refused(asked) == ""
    erased_and_back(asked)
    assert refused(asked) == ""
    asked.tell("unsubscribed", user_id="ada")
    erased_and_back(asked)
    assert (refused(asked), refused(asked, "offers")) == ("unsubscribed", "unsubscribed")


def test_what_remains_of_an_address_is_in_no_table_and_other_workspaces_know_nothing_of_it(asked: Asked) -> None:
    asked.ask("suppression_add", address=ADA, reason="complaint")
    asked.ask("people_erase", id=f"email:{ADA}")
    with pytest.raises(NotFound):
        asked.ask("suppression_get", address=ADA, workspace="other")
    store = asked.engine.store
    everything = [
        (*item.key, item.value.decode("latin-1")) for table in store.tables() for item in scan_pages(store, table)
    ]
    assert [each for each in everything if ADA in str(each)] == []
    assert not any(ADA in line for line in dump(store, asked.engine.catalogue))


def test_an_address_that_was_never_refused_leaves_nothing(asked: Asked) -> None:
    asked.tell("subscribed", user_id="ada", email=ADA, properties={"topic": "news"})
    asked.ask("people_erase", id=f"email:{ADA}")
    assert "consent_remaining" not in asked.engine.store.tables()


def test_somebody_who_came_back_is_tagged_and_suppressed_like_anybody(asked: Asked) -> None:
    for _ in range(3):
        assert asked.ask("people_tag", id="ada", add=["vip"])["tags"] == ["vip"]
        asked.ask("suppression_add", address=ADA)
        assert refused(asked) == "suppressed:manual"
        erased_and_back(asked)
        assert asked.ask("person", id="ada")["tags"] == []
