"""What uses a definition and is none itself: it is named before the definition is deleted, and refuses that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.by_hand_stage import Process
from threadline.kernel.errors import Conflict
from threadline.stores.memory import MemoryStore

FILES = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {receipt: {sender: shop, subject: Thanks, text: Hello, transactional: true}}
consent: {brand: Shop}
"""
BY_HAND = {
    "segments/vip": "when: {field: tags, contains: vip}\n",
    "features/orders": "aggregate: count\nevents: order_placed\n",
    "mail.templates/hello": "sender: shop\nsubject: Hello\ntext: Hello\ntransactional: true\n",
    "mail.senders/club": "from: club@example.com\n",
    "consent.topics/news": "title: News\n",
    "journeys/welcome": "version: 1\ntrigger: {event: signed_up}\nsteps: [{wait: 3d}, {send: receipt}]\n",
    "points/points": "expires_after: 1y\n",
}


def made_by_hand() -> Process:
    process = Process(MemoryStore(), FILES)
    for definition, text in BY_HAND.items():
        section, name = definition.split("/")
        process.ask("definitions_declare", section=section, name=name, text=text)
    process.work()
    return process


def used(process: Process) -> dict[str, list[str]]:
    answer = process.ask("definitions_uses")
    return {f"{use['section']}/{use['name']}": use["users"] for use in answer["uses"]}


def delete(process: Process, definition: str, **more: Any) -> Any:
    section, name = definition.split("/")
    return process.ask("definitions_delete", section=section, name=name, **more)


def test_what_nothing_uses_is_listed_with_nothing() -> None:
    assert used(made_by_hand()) == {}


def test_a_rule_of_the_store_uses_what_its_conditions_and_actions_name() -> None:
    process = made_by_hand()
    conditions = {"all": [{"field": "segments.vip.since", "exists": True}, {"field": "points.balance", "exists": True}]}
    actions = [
        {"send_notification": {"template": "hello"}},
        {"emit_event": {"type": "x", "properties": {"n": "${features.orders}"}}},
    ]
    process.ask("rules_write", id="warm", rule={"conditions": conditions, "actions": actions})
    assert used(process) == {}, "a draft decides nothing"
    process.ask("rules_activate", id="warm", version=1, untested=True)
    sentence = "rule 'warm', whose version 1 is active"
    names = ("segments/vip", "points/points", "mail.templates/hello", "features/orders")
    assert used(process) == {name: [sentence] for name in names}
    process.ask("rules_retire", id="warm")
    assert used(process) == {}


def test_an_alert_uses_its_segments_and_what_its_conditions_name_until_it_is_withdrawn() -> None:
    process = made_by_hand()
    process.ask(
        "alerts_write", id="sale", title="Sale", segments=["vip"], when={"field": "features.orders", "exists": True}
    )
    assert used(process) == {"segments/vip": ["alert 'sale'"], "features/orders": ["alert 'sale'"]}
    process.ask("alerts_withdraw", id="sale")
    assert used(process) == {}


def test_a_broadcast_uses_what_it_names_until_it_is_over() -> None:
    process = made_by_hand()
    broadcast = {"template": "receipt", "sender": "club", "topic": "news", "audience": {"segment": "vip"}}
    arms = [{"name": "a", "template": "hello"}, {"name": "b"}]
    process.ask("broadcasts_create", id="spring", **broadcast, arms=arms)
    names = ("segments/vip", "mail.templates/hello", "mail.senders/club", "consent.topics/news")
    assert used(process) == {name: ["broadcast 'spring', which is a draft"] for name in names}
    process.ask("broadcasts_cancel", id="spring")
    assert used(process) == {}


def test_people_in_a_journey_are_counted() -> None:
    process = made_by_hand()
    for name in ("ada", "bob"):
        event = {"type": "signed_up", "key": name, "identifiers": {"user_id": name}}
        process.ask("record", events=[event])
    assert used(process) == {"journeys/welcome": ["2 people in it"]}
    assert process.ask("definitions_uses", section="journeys", name="welcome")["uses"][0]["users"] == ["2 people in it"]


def test_what_is_used_is_deleted_only_by_who_says_anyway() -> None:
    process = made_by_hand()
    process.ask("broadcasts_create", id="spring", template="receipt", audience={"segment": "vip"})
    with pytest.raises(Conflict, match="'vip' is still used: broadcast 'spring', which is a draft") as refused:
        delete(process, "segments/vip")
    assert "`anyway`" in refused.value.hint
    assert "vip" in process.segments()
    delete(process, "segments/vip", anyway=True)
    assert process.segments() == []
    assert used(process) == {}


def test_going_back_says_what_uses_what_it_would_remove() -> None:
    process = made_by_hand()
    process.ask("broadcasts_create", id="spring", template="receipt", audience={"segment": "vip"})
    shown = process.ask("definitions_preview_go_back", version=0)
    assert shown["problems"] == []
    assert [(use["name"], use["users"]) for use in shown["uses"]] == [("vip", ["broadcast 'spring', which is a draft"])]
