"""What is sent to whom: once for an occurrence, as consent, caps, quiet hours and warm-up allow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.mail_stage import SHOP, STARTS_AT, MailStage
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.reach.mail.order import mail_effect
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import Conflict, InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Policy, PolicyView
from threadline.kernel.sender import Outcome
from threadline.kernel.time import DAY, HOUR


def mails_of(stage: MailStage, who: str = "ada") -> list[tuple[str, str]]:
    return [(each.template, each.status) for each in stage.ask("mail_history", id=who).mails]


def test_a_mail_is_sent_with_headers_for_unsubscribing() -> None:
    stage = MailStage()
    stage.person(first_name="Ada")
    message = stage.send(variables={"code": "X1"})
    [data], [read] = stage.box.sent, stage.box.messages
    assert (data["from"], data["to"], data["smtputf8"]) == ("hello@shop.example", "ada@example.com", False)
    assert read["Message-ID"] == f"<{message}@shop.example>"
    assert read["List-Unsubscribe"].startswith("<http://localhost:8787/u/")
    assert read["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert read["List-Id"] == "<news.shop.example>"
    assert read["Feedback-ID"] == "single:welcome:marketing:shop"
    assert read["Auto-Submitted"] is None
    [(type, properties)] = stage.outcomes()
    assert type == "mail_sent"
    assert {name: properties[name] for name in ("message", "template", "address", "subject", "topic")} == {
        "message": message,
        "template": "welcome",
        "address": "ada@example.com",
        "subject": "Welcome Ada",
        "topic": "news",
    }
    assert mails_of(stage) == [("welcome", "sent")]


def test_a_transactional_mail_sees_its_event_and_bears_no_list_headers() -> None:
    stage = MailStage()
    stage.person()
    event = stage.record("purchase_completed", order="1001", total=9).id
    stage.send("receipt", event=event)
    [read] = stage.box.messages
    assert read["Subject"] == "Order 1001"
    assert read["Auto-Submitted"] == "auto-generated"
    assert [name for name in read if name.lower().startswith("list-")] == []


def test_the_same_request_is_one_mail_and_another_one_under_its_key_is_refused() -> None:
    stage = MailStage()
    stage.person()
    first = stage.send(variables={"code": "1"}, request="r")
    assert (
        stage.ask("mail_send", id="ada", template="welcome", variables={"code": "1"}, request="r").status == "duplicate"
    )
    with pytest.raises(Conflict, match="used for another mail"):
        stage.send(variables={"code": "2"}, request="r")
    stage.work()
    assert [each["record"]["message"] for each in stage.box.sent] == [first]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"template": "welcom"}, "did you mean 'welcome'"),
        ({"template": "welcome", "variables": {"cod": 1}}, "did you mean 'code'"),
        ({"template": "welcome", "sender": "shp"}, "did you mean 'shop'"),
        ({"template": "needs"}, "needs the variable 'code'"),
    ],
)
def test_a_request_that_nobody_can_send_is_refused_at_once(params: dict[str, Any], message: str) -> None:
    stage = MailStage(SHOP + "    needs: {subject: '{{ code }}', text: x, variables: {code: {}}}\n")
    stage.person()
    with pytest.raises((InvalidValue, NotFound), match=message):
        stage.ask("mail_send", id="ada", **params)


def test_a_public_write_key_cannot_ask_for_a_mail() -> None:
    stage = MailStage()
    stage.person()
    stage.record("mail_requested", template="welcome", variables={})
    stage.record("mail_sent", message="a" * 32, template="welcome")
    stage.work()
    assert stage.box.sent == []
    assert mails_of(stage) == []


@pytest.mark.parametrize(
    ("traits", "reason"),
    [({"email": None}, "no_address"), ({"email": "ada at example"}, "invalid_address"), ({"email": 7}, "no_address")],
)
def test_without_an_address_a_mail_is_skipped(traits: dict[str, Any], reason: str) -> None:
    stage = MailStage()
    stage.person(**traits)
    stage.send()
    [(type, properties)] = stage.outcomes()
    assert (type, properties["reason"], properties["template"]) == ("mail_skipped", reason, "welcome")
    assert mails_of(stage) == [("welcome", "skipped")]
    [mail] = stage.ask("mail_history", id="ada").mails
    assert (mail.reason, mail.subject) == (reason, "")


def test_the_history_of_mails_has_the_subject_as_it_was_sent() -> None:
    stage = MailStage()
    stage.person(first_name="Ada")
    stage.send(variables={"code": "X1"})
    [mail] = stage.ask("mail_history", id="ada").mails
    assert (mail.status, mail.subject) == ("sent", stage.box.messages[0]["Subject"])
    assert (mail.journey, mail.step, mail.broadcast, mail.reason) == ("", "", "", "")


def test_a_mail_that_its_provider_refuses_is_given_up_on_and_says_which_template_it_was() -> None:
    stage = MailStage()
    stage.person()
    stage.box.answer = lambda data: Outcome(type="threadline.effect_parked", parked="550 no such mailbox")
    message = stage.send()
    [(type, properties)] = stage.outcomes()
    assert type == "threadline.effect_parked"
    assert {name: properties[name] for name in ("message", "template", "topic", "why")} == {
        "message": message,
        "template": "welcome",
        "topic": "news",
        "why": "550 no such mailbox",
    }
    assert mails_of(stage) == [("welcome", "failed")]


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_of_several_addresses_the_one_that_was_used_last_counts(order: tuple[str, str]) -> None:
    stage = MailStage()
    for name in order:
        stage.now += DAY
        identifiers = (Identifier("user_id", "ada"), Identifier("email", f"{name}@example.com"))
        event = Event(type="page", identifiers=identifiers, occurred_at=stage.now, key=name)
        stage.engine.recorder.record([event])
    stage.send()
    assert [each["to"] for each in stage.box.sent] == [f"{order[1]}@example.com"]


def test_a_missing_trait_is_a_dead_letter_that_is_sent_once_it_is_there() -> None:
    stage = MailStage(SHOP + "    hello: {subject: Hi, text: 'Dear {{ person.traits.last_name }}'}\n")
    stage.person()
    stage.send("hello")
    [(type, properties)] = stage.outcomes()
    assert (type, properties["reason"]) == ("threadline.effect_parked", "template_failed")
    assert "`person.traits.last_name` is undefined" in properties["why"]
    assert mails_of(stage) == [("hello", "failed")]
    stage.person(last_name="Lovelace")
    delivery = stage.engine.delivery
    assert delivery.redrive(delivery.dead_letters("default"), "me") == 1
    stage.work()
    assert [message.get_content().strip() for message in stage.box.messages] == ["Dear Lovelace"]
    assert mails_of(stage) == [("hello", "sent")]


def test_a_null_is_missing_and_never_written_as_none() -> None:
    stage = MailStage(SHOP + "    hello: {subject: Hi, text: '{{ event.properties.a.b }}'}\n")
    stage.person()
    event = stage.record("purchase_completed", a={"b": None}).id
    stage.send("hello", event=event)
    assert stage.outcomes()[0][1]["reason"] == "template_failed"


def test_who_has_unsubscribed_gets_receipts_only_and_who_is_suppressed_gets_nothing() -> None:
    stage = MailStage()
    stage.person()
    event = stage.record("purchase_completed", order="1").id
    stage.record("unsubscribed", source_type="direct", topic="news", address="ada@example.com")
    stage.send("welcome", request="1")
    stage.send("receipt", request="2", event=event)
    stage.record("address_suppressed", source_type="direct", address="ada@example.com", reason="complaint")
    stage.send("receipt", request="3", event=event)
    reasons = [properties.get("reason") for _, properties in stage.outcomes()]
    assert [type for type, _ in stage.outcomes()] == ["mail_skipped", "mail_sent", "mail_skipped"]
    assert (reasons[0], reasons[2]) == ("unsubscribed", "suppressed:complaint")


def react(recorded: Recorded, known: PolicyView) -> list[Any]:
    about = {"broadcast": "campaign-1", "arm": "a", "subject": "For {{ person.email }}"}
    return [mail_effect(key, "welcome", {}, "campaign-1", **about) for key in ("one", "two")]


def test_one_occurrence_is_one_mail_to_an_address_whoever_has_it() -> None:
    stage = MailStage()
    twice = Policy("twice", frozenset({"go"}), react, sends=frozenset({"mail"}))
    definitions = Definitions([("shop.yaml", SHOP)])
    from threadline.capabilities.profile.people.definition import rules
    from threadline.engine.delivery.dispatcher import Dispatcher
    from threadline.engine.engine import Engine
    from threadline.engine.folding.catalogue import Catalogue, discover

    stage.engine = Engine(
        stage.engine.store,
        Catalogue([*discover("threadline.capabilities", definitions=definitions), twice], rules()),
        lambda: stage.now,
    )
    stage.engine.public_address.use_local("http://localhost:8787")
    stage.dispatcher = Dispatcher(stage.engine, {"mail": stage.box}, owner="test")
    stage.person("ada", email="both@example.com")
    stage.person("bob", email="Both@Example.com")
    stage.record("go", "ada")
    stage.record("go", "bob")
    stage.work()
    assert [message["Subject"] for message in stage.box.messages] in (
        ["For both@example.com"],
        ["For Both@Example.com"],
    )
    outcomes = [*stage.outcomes("ada"), *stage.outcomes("bob")]
    assert sorted(type for type, _ in outcomes) == ["mail_sent", "mail_skipped", "mail_skipped", "mail_skipped"]
    assert {properties.get("reason", "") for _, properties in outcomes} == {"", "duplicate"}
    assert all(properties["broadcast"] == "campaign-1" and properties["arm"] == "a" for _, properties in outcomes)


def test_caps_count_marketing_mail_only_and_postpone_or_skip() -> None:
    stage = MailStage(SHOP + "  caps: [{mails: 2, per: 2d}, {mails: 3, per: 30d}]\n")
    stage.person()
    event = stage.record("purchase_completed", order="1").id
    for number in range(3):
        stage.send("receipt", request=f"r{number}", event=event)
    for number in range(3):
        stage.send("welcome", request=f"w{number}")
    assert len(stage.box.sent) == 5
    stage.now += 2 * DAY - HOUR
    stage.work()
    assert len(stage.box.sent) == 5
    stage.now += HOUR
    stage.work()
    assert len(stage.box.sent) == 6
    # The next one could go after 30 days only, which is later than it would be tried.
    stage.send("welcome", request="w4")
    assert stage.outcomes()[-1][0] == "mail_skipped"
    assert stage.outcomes()[-1][1]["reason"] == "frequency_cap"


def test_a_mail_of_which_nobody_knows_counts_for_caps() -> None:
    stage = MailStage(SHOP + "  caps: [{mails: 1, per: 1d}]\n")
    stage.person()

    def lost(data: dict[str, Any]) -> Outcome:
        raise ConnectionError("after everything was sent")

    stage.box.answer = lost
    stage.send(request="1")
    stage.send(request="2")
    assert len(stage.box.sent) == 1
    assert mails_of(stage) == [("welcome", "unknown")]
    # A sign from outside, such as a delivery report, says that it has arrived.
    [unknown] = stage.engine.delivery.unknown("default")
    stage.now += 1
    assert stage.engine.delivery.resolve("default", unknown.pending.id, None, "feedback")
    assert mails_of(stage) == [("welcome", "sent")]
    assert stage.ask("mail_sent", id="ada", template="welcome").count == 1


def test_quiet_hours_are_those_of_the_recipient() -> None:
    stage = MailStage(SHOP + "  timezone: Europe/Berlin\n  quiet_hours: {from: '21:00', to: '08:00'}\n")
    stage.person("ada")
    stage.person("tom", timezone="America/Los_Angeles")
    event = stage.record("purchase_completed", "tom", order="1").id
    stage.send(who="ada")  # 11:00 in Berlin
    stage.send(who="tom")  # 02:00 in Los Angeles
    stage.send("receipt", who="tom", event=event)
    assert [each["to"] for each in stage.box.sent] == ["ada@example.com", "tom@example.com"]
    stage.now = STARTS_AT + 6 * HOUR - 1
    stage.work()
    assert len(stage.box.sent) == 2
    stage.now += 1
    stage.work()
    assert [each["to"] for each in stage.box.sent[2:]] == ["tom@example.com"]


def test_a_new_domain_sends_more_from_day_to_day() -> None:
    shop = SHOP.replace("name: The Shop", "warm_up: {starts: 2026-03-02, mails: [2, 3]}")
    stage = MailStage(shop.replace("mail:\n", "mail:\n  provider: {at_once: 4}\n", 1))
    sent = []
    for number in range(10):
        stage.person(f"p{number}")
        stage.ask("mail_send", id=f"p{number}", template="welcome")
    for _ in range(4):
        stage.work()
        sent.append(len(stage.box.sent))
        stage.now = (stage.now // DAY + 1) * DAY
    # Those that are sent at the same time are counted afterwards: at most three more.
    assert sent[0] in range(2, 6)
    assert sent[2:] == [10, 10]
    assert sent[0] < sent[1] < 10


def test_replies_and_bounces_come_to_addresses_that_name_the_mail() -> None:
    stage = MailStage(SHOP.replace("name: The Shop", "replies: re@shop.example, bounces: b@shop.example"))
    stage.person()
    message = stage.send()
    assert stage.box.sent[0]["from"] == f"b+{message}@shop.example"
    assert stage.box.messages[0]["Reply-To"] == f"re+{message}@shop.example"


def test_a_reply_address_in_utf_8_needs_a_server_that_speaks_it() -> None:
    stage = MailStage(SHOP.replace("name: The Shop", "reply_to: jörg@grüße.example"))
    stage.person()
    stage.send()
    [data] = stage.box.sent
    assert data["smtputf8"] is True
    assert "Reply-To: jörg@xn--".encode() in data["message"]


def test_a_mail_asks_whether_somebody_wants_a_topic() -> None:
    consent = "consent: {topics: {news: {title: News, confirm: sure}}}\n"
    stage = MailStage(SHOP + "    sure: {subject: 'Sure?', text: 'Yes: {{ confirm_url }}'}\n" + consent)
    stage.person()
    stage.record("subscribed", source_type="direct", topic="news", address="ada@example.com")
    stage.work()
    [message] = stage.box.messages
    assert (message["Subject"], message["List-Unsubscribe"]) == ("Sure?", None)
    assert "Yes: http://localhost:8787/c/" in message.get_content()
    stage.send("welcome")
    assert stage.outcomes()[-1][1]["reason"] == "unconfirmed"


def test_links_are_tracked_apart_from_those_of_consent() -> None:
    stage = MailStage(
        SHOP + "    hello: {subject: Hi, html: '<a href=\"https://x.example/\">x</a>{{ preferences_url }}'}\n"
    )
    stage.person()
    stage.send("hello")
    html = stage.box.messages[0].get_body(("html",))
    assert html is not None
    assert "https://x.example" not in html.get_content()
    assert "http://localhost:8787/m/c/" in html.get_content()
    assert "http://localhost:8787/p/" in html.get_content()


def test_a_preview_sends_nothing_and_says_what_is_wrong() -> None:
    stage = MailStage(SHOP + "    hello: {subject: 'Hi {{ person.traits.plan }}', html: '<img src=x>'}\n")
    shown = stage.ask("mail_preview", template="hello")
    assert (shown.subject, shown.recipient) == ("Hi [plan]", "ada@example.com")
    wrong = ("no `alt`", "pictures alone", "text part is empty", "unsubscribe_url", "no whole address")
    assert [words in warning for words, warning in zip(wrong, shown.warnings, strict=True)] == [True] * len(wrong)
    stage.person(plan="pro")
    stage.record("unsubscribed", source_type="direct", address="ada@example.com")
    shown = stage.ask("mail_preview", template="hello", person="ada")
    assert shown.subject == "Hi pro"
    assert shown.warnings[0] == "this person would not get it: unsubscribed"
    assert stage.ask("mail_preview", template="welcome").text.startswith("Code A1")
    stage.work()
    assert stage.box.sent == []


def test_what_was_sent_is_told_as_of_an_instant() -> None:
    stage = MailStage()
    stage.person()
    stage.send(request="1")
    between = stage.now
    stage.now += DAY
    stage.send(request="2")
    from threadline.kernel.time import format_time

    now = stage.ask("mail_sent", id="ada", template="welcome")
    then = stage.ask("mail_sent", id="ada", template="welcome", as_of=format_time(between + 10))
    assert (now.sent, now.count, then.count, then.last == now.first) == (True, 2, 1, True)
    assert stage.ask("mail_sent", id="ada", template="receipt").sent is False


RULES = """
rules:
  big:
    version: 1
    conditions: {field: event.properties.total, greater_than: 50}
    actions:
      - send_notification: {template: welcome, variables: {code: "${event.properties.code}"}}
rule_sets:
  orders: {events: [purchase_completed], rules: [big]}
"""


def test_a_rule_sends_a_mail() -> None:
    stage = MailStage(SHOP + RULES)
    stage.person()
    stage.record("purchase_completed", total=80, code="A7")
    stage.work()
    [message] = stage.box.messages
    assert "Code A7" in str(message.get_body(("plain",)))
    [(type, properties)] = stage.outcomes()
    assert (type, properties["rule"], properties["template"]) == ("mail_sent", "big", "welcome")


def test_a_rule_that_sends_an_unknown_template_is_a_mistake() -> None:
    definitions = Definitions([("shop.yaml", SHOP + RULES.replace("template: welcome", "template: welcom"))])
    with pytest.raises(InvalidDefinition, match="rule 'big': there is no template 'welcom'; did you"):
        Catalogue.declared(definitions, rules())


def test_two_mails_that_are_due_together_know_of_each_other() -> None:
    stage = MailStage(SHOP + "  caps: [{mails: 1, per: 1d}]\n")
    for who in ("ada", "bob", "eve"):
        stage.person(who)
        for request in ("1", "2"):
            stage.ask("mail_send", id=who, template="welcome", request=request)
    stage.work()
    assert sorted(each["to"] for each in stage.box.sent) == ["ada@example.com", "bob@example.com", "eve@example.com"]
    stage.now += DAY
    stage.work()
    assert len(stage.box.sent) == 6
