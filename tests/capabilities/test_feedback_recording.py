"""Feedback becomes one event of the person who got the mail, however often and in whatever form it is said."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capabilities.feedback_stage import Stage
from threadline.engine.context import Context
from threadline.kernel.errors import Unavailable
from threadline.kernel.time import format_time

ADA = {"emailAddress": "ada@example.com"}


def dsn(
    message: str, address: str = "ada@example.com", action: str = "failed", status: str = "5.1.1", to: str = ""
) -> str:
    """A report as Postfix sends it."""
    raw = (
        f"Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example (Mail System)\r\nTo: {to or 'bounce@shop.example'}\r\n"
        f"Message-ID: <{message[:8]}{status}@mx.example>\r\nSubject: Undelivered Mail Returned to Sender\r\n"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\n"
        "I'm sorry to have to inform you that your message could not be delivered.\r\n--b\r\n"
        f"Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
        f"Final-Recipient: rfc822; {address}\r\nAction: {action}\r\nStatus: {status}\r\n"
        "Diagnostic-Code: smtp; said something\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\n"
        f"From: news@shop.example\r\nMessage-ID: <{message}@shop.example>\r\n--b--\r\n"
    )
    return b64encode(raw.encode()).decode()


def ses(stage: Stage, message: str, type: str, member: str, **said: object) -> str:
    """A notification of SES about a mail that bears our tag."""
    document = {
        "eventType": type,
        "mail": {
            "timestamp": format_time(stage.now - 10_000_000),
            "messageId": f"ses-{message}",
            "destination": ["ada@example.com"],
            "tags": {"threadline-message": [message], "threadline-workspace": ["default"], "ses:source-ip": ["::1"]},
        },
        member: {"timestamp": format_time(stage.now), **said},
    }
    return json.dumps(document)


def test_permanent_bounce_is_recorded_once_and_suppresses_the_address_in_the_same_commit():
    stage = Stage()
    message = stage.mail(journey="onboarding", step="hello", arm="a", topic="news")
    for status in ("recorded", "duplicate", "duplicate"):
        result = stage.run("feedback_receive", raw=dsn(message), recipients=["bounce@shop.example"])
        assert (result.kind, [each.status for each in result.taken]) == ("bounce", [status])
        stage.pass_(60)
    (bounced,) = stage.events("ada", "mail_bounced")
    assert bounced.properties == {
        "message": message,
        "template": "welcome",
        "topic": "news",
        "journey": "onboarding",
        "step": "hello",
        "arm": "a",
        "address": "ada@example.com",
        "bounce": "permanent",
        "code": "5.1.1",
        "text": "said something",
    }
    (suppressed,) = stage.events("ada", "address_suppressed")
    assert (suppressed.properties["address"], suppressed.properties["reason"]) == ("ada@example.com", "bounce")
    assert stage.suppressed() == "bounce"
    assert stage.problems == []


@pytest.mark.parametrize("names", ["message_id", "token", "quoted"])
def test_bounce_is_matched_by_message_id_or_by_the_address_it_came_to(names):
    stage = Stage()
    message, other = stage.mail(), stage.mail("bob@example.com", "bob")
    raw, to = dsn("0" * 32), []
    if names == "message_id":
        raw = dsn(message)
    elif names == "token":
        to = [f"BOUNCE+{message.upper()}@shop.example"]
    else:
        raw = b64encode(
            b"From: MAILER-DAEMON@x.example\r\nSubject: failure notice\r\n\r\nHi. This is the qmail-send program.\r\n"
            b"I'm afraid I wasn't able to deliver your message to the following addresses.\r\n\r\n"
            b"<ada@example.com>:\r\n"
            b"550 5.1.1 no such user\r\n\r\n--- Below this line is a copy of the message.\r\n\r\n"
            b"Message-ID: <%s@shop.example>\r\n" % message.encode()
        ).decode()
    result = stage.run("feedback_receive", raw=raw, recipients=to)
    assert [(each.status, each.message) for each in result.taken] == [("recorded", message)]
    assert stage.suppressed("ada@example.com") == "bounce"
    assert stage.events("bob", "mail_bounced") == []
    assert other != message


@pytest.mark.parametrize(
    ("action", "status", "type", "bounce"),
    [
        ("failed", "4.2.2", "mail_bounced", "transient"),
        ("failed", "5.2.2", "mail_bounced", "transient"),
        ("failed", "5.7.1", "mail_bounced", "content"),
        ("delayed", "4.4.1", "mail_delayed", None),
        ("delivered", "2.0.0", "mail_delivered", None),
        ("relayed", "2.0.0", "mail_delivered", None),
    ],
)
def test_report_that_is_not_about_the_address_suppresses_nobody(action, status, type, bounce):
    stage = Stage()
    message = stage.mail()
    stage.run("feedback_receive", raw=dsn(message, action=action, status=status))
    (event,) = stage.events("ada", type)
    assert event.properties.get("bounce") == bounce
    assert stage.suppressed() == ""


def test_transient_bounces_suppress_at_the_declared_limit_within_its_time():
    stage = Stage()
    for count in range(2):
        stage.run("feedback_receive", raw=dsn(stage.mail(), status="4.2.2"))
        assert stage.suppressed() == "", count
    stage.pass_(8 * 86_400)
    for count in range(2):
        stage.run("feedback_receive", raw=dsn(stage.mail(), status="4.2.2"))
        assert stage.suppressed() == "", count
    stage.run("feedback_receive", raw=dsn(stage.mail(), status="4.2.2"))
    assert stage.suppressed() == "bounce"


def test_transient_bounces_of_one_address_count_for_each_person_and_of_one_person_for_each_address():
    stage = Stage()
    for who in ("ada", "bob"):
        for _ in range(2):
            stage.run("feedback_receive", raw=dsn(stage.mail(who=who), status="4.2.2"))
    other = stage.mail("a@other.example", "ada")
    stage.run("feedback_receive", raw=dsn(other, "a@other.example", status="4.2.2"))
    assert (stage.suppressed(), stage.suppressed("a@other.example")) == ("", "")
    stage.run("feedback_receive", raw=dsn(stage.mail(who="bob"), status="4.2.2"))
    assert (stage.suppressed(), stage.suppressed("a@other.example")) == ("bounce", "")


def test_delivery_ends_the_count_of_transient_bounces():
    stage = Stage()
    for _ in range(4):
        stage.run("feedback_receive", raw=dsn(stage.mail(), status="4.2.2"))
        stage.run("feedback_receive", raw=dsn(stage.mail(), status="4.2.2"))
        stage.run("feedback_receive", raw=dsn(stage.mail(), action="delivered", status="2.0.0"))
    assert stage.suppressed() == ""


def test_bounce_of_somebody_to_whom_it_was_forwarded_is_transient():
    stage = Stage()
    stage.run("feedback_receive", raw=dsn(stage.mail(), address="someone@else.example"))
    assert stage.events("ada", "mail_bounced")[0].properties["bounce"] == "transient"
    assert stage.suppressed() == stage.suppressed("someone@else.example") == ""


def test_report_that_our_recipient_was_reached_and_another_was_not_is_no_bounce_of_ours():
    stage = Stage()
    both = "ada@example.com\r\nAction: delivered\r\nStatus: 2.0.0\r\n\r\nFinal-Recipient: rfc822; other@example.com"
    stage.run("feedback_receive", raw=dsn(stage.mail(), address=both))
    assert [len(stage.events("ada", type)) for type in ("mail_delivered", "mail_bounced")] == [1, 0]


def test_mail_about_no_mail_of_ours_is_kept_and_suppresses_nobody():
    stage = Stage()
    stage.mail()
    result = stage.run("feedback_receive", raw=dsn("f" * 32))
    assert [each.status for each in result.taken] == ["unmatched"]
    ((_, entry),) = stage.engine.rejected.page("default")
    assert (entry.code, entry.source) == ("unmatched_feedback", "threadline.feedback")
    assert "Final-Recipient: rfc822; ada@example.com" in entry.payload["raw"]
    assert stage.suppressed() == ""


def test_a_write_key_cannot_forge_a_bounce():
    from threadline.kernel.event import Event, Identifier

    stage = Stage()
    message = stage.mail()
    properties = {"message": message, "address": "ada@example.com", "bounce": "permanent", "template": "welcome"}
    event = Event(
        type="mail_bounced",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=stage.now,
        key="forged",
        source="web",
        source_type="external",
        properties=properties,
    )
    assert stage.engine.recorder.record([event])[0].status == "accepted"
    assert stage.suppressed() == ""
    assert stage.run("feedback_counters", template="welcome").counts.bounced.total == 0


def test_report_of_a_mail_server_that_nobody_understands_is_kept():
    stage = Stage()
    raw = f"From: MAILER-DAEMON@x.example\r\nTo: bounce+{stage.mail()}@shop.example\r\nSubject: ?\r\n\r\nOops\r\n"
    assert stage.run("feedback_receive", raw=b64encode(raw.encode()).decode()).kind == "other"
    assert [entry.code for _, entry in stage.engine.rejected.page("default")] == ["unreadable_mail"]
    assert stage.suppressed() == ""


def test_caller_of_one_workspace_says_nothing_about_mails_of_another():
    stage = Stage()
    recipients = [ADA]
    bounce = {"bounceType": "Permanent", "feedbackId": "f", "bouncedRecipients": recipients}
    text = ses(stage, stage.mail(), "Bounce", "bounce", **bounce)
    operation = stage.engine.catalogue.operation("feedback_notify")
    stage.pass_(3_600)
    found = operation.run(Context(stage.engine, "other", stage.now, "test"), operation.params(text=text))
    assert [each.status for each in found.taken] == ["unmatched"]
    assert stage.suppressed() == ""
    assert len(stage.engine.rejected.page("other")) == 1


@pytest.mark.parametrize(
    "fields", ["Original-Rcpt-To: <hidden@isp.example>", "Original-Rcpt-To: <ada@example.com>", ""]
)
@pytest.mark.parametrize(("type", "reason"), [("abuse", "complaint"), ("not-spam", "")])
def test_complaint_is_about_the_recipient_of_the_mail_whatever_address_it_names(fields, type, reason):
    stage = Stage()
    raw = (
        "From: fbl@isp.example\r\nTo: fbl@shop.example\r\nSubject: complaint\r\n"
        'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n--b\r\n\r\nSpam.\r\n--b\r\n'
        f"Content-Type: message/feedback-report\r\n\r\nFeedback-Type: {type}\r\nVersion: 1\r\n{fields}\r\n--b\r\n"
        f"Content-Type: message/rfc822\r\n\r\nFrom: x\r\nMessage-ID: <replaced@isp.example>\r\n"
        f"X-Threadline-Message: {stage.mail()}\r\n\r\nHello\r\n--b--\r\n"
    )
    assert len(stage.run("feedback_receive", raw=b64encode(raw.encode()).decode()).taken) == bool(reason)
    assert [each.properties["feedback"] for each in stage.events("ada", "mail_complained")] == [type][: bool(reason)]
    assert stage.suppressed() == reason
    assert stage.engine.rejected.page("default") == []


def test_reply_is_an_event_with_its_visible_text_and_an_automatic_one_is_none():
    stage = Stage()
    message = stage.mail()
    head = f"From: Ada <ada@example.com>\r\nTo: reply+{message}@shop.example\r\nMessage-ID: <r@example.com>\r\n"
    body = "Subject: Re: Hello\r\n\r\nYes please.\r\n\r\nOn Tue, 3 Mar 2026, Shop wrote:\r\n> Hello\r\n"
    auto = stage.run(
        "feedback_receive", raw=b64encode(f"{head}Auto-Submitted: auto-replied\r\n{body}".encode()).decode()
    )
    assert (auto.kind, auto.taken) == ("auto_reply", [])
    result = stage.run("feedback_receive", raw=b64encode(f"{head}{body}".encode()).decode())
    assert result.kind == "reply"
    (reply,) = stage.events("ada", "mail_replied")
    assert reply.properties["text"] == "Yes please."
    assert (reply.properties["sender"], reply.properties["subject"]) == ("ada@example.com", "Re: Hello")


def test_notifications_of_ses_become_events():
    stage = Stage()
    message = stage.mail(broadcast="april")
    said = {
        "mail_delivered": ("Delivery", "delivery", {"recipients": ["ada@example.com"], "smtpResponse": "250 ok"}),
        "mail_delayed": ("DeliveryDelay", "deliveryDelay", {"delayedRecipients": [ADA]}),
        "mail_opened": ("Open", "open", {"userAgent": "Mozilla/5.0"}),
        "mail_fetched": ("Click", "click", {"link": "https://shop.example/a", "userAgent": "Mozilla/5.0 (X11)"}),
        "mail_complained": (
            "Complaint",
            "complaint",
            {
                "feedbackId": "f1",
                "complaintFeedbackType": "abuse",
                "complainedRecipients": [{"emailAddress": "bob@example.com"}, {"emailAddress": "ada@example.com"}],
            },
        ),
    }
    for type, (name, member, values) in said.items():
        for _ in range(2):
            stage.run("feedback_notify", text=ses(stage, message, name, member, **values))
        (event,) = stage.events("ada", type)
        assert (event.properties["message"], event.properties["broadcast"]) == (message, "april")
        assert event.occurred_at == stage.now
    assert stage.events("ada", "mail_opened")[0].properties["why"] == "apple_privacy"
    stage.decide()
    assert stage.events("ada", "mail_clicked")[0].properties["machine"] is False
    assert stage.suppressed() == "complaint"
    assert stage.suppressed("bob@example.com") == ""


def test_complaint_that_was_taken_back_suppresses_nobody():
    stage = Stage()
    recipients = [{"emailAddress": "ada@example.com"}]
    text = ses(
        stage, stage.mail(), "Complaint", "complaint", complaintFeedbackType="not-spam", complainedRecipients=recipients
    )
    assert stage.run("feedback_notify", text=text).taken == []
    assert stage.events("ada", "mail_complained") == []
    assert stage.suppressed() == ""


@pytest.mark.parametrize("type", ["Transient", "Undetermined"])
def test_bounce_that_ses_does_not_call_permanent_is_transient(type):
    stage = Stage()
    recipients = [{"emailAddress": "ada@example.com", "action": "failed", "status": "5.1.1"}]
    stage.run(
        "feedback_notify",
        text=ses(
            stage, stage.mail(), "Bounce", "bounce", bounceType=type, feedbackId="f", bouncedRecipients=recipients
        ),
    )
    assert stage.events("ada", "mail_bounced")[0].properties["bounce"] == "transient"
    assert stage.suppressed() == ""


def test_feedback_about_a_mail_of_which_nobody_knew_says_that_it_was_sent():
    stage = Stage()
    message = stage.mail(lost=True)
    assert stage.events("ada", "mail_sent", "threadline.effect_done") == []
    assert [each.pending.id for each in stage.engine.delivery.unknown("default")] == [message]
    stage.run("feedback_notify", text=ses(stage, message, "Send", "send"))
    assert stage.engine.delivery.unknown("default") == []
    assert [each.properties["message"] for each in stage.events("ada", "mail_sent")] == [message]


def test_feedback_that_comes_before_its_mail_is_asked_for_again_and_later_kept():
    stage = Stage()
    text = ses(stage, "a" * 32, "Delivery", "delivery", recipients=["ada@example.com"])
    with pytest.raises(Unavailable):
        stage.run("feedback_notify", text=text)
    assert stage.engine.rejected.page("default") == []
    stage.pass_(3_600)
    assert [each.status for each in stage.run("feedback_notify", text=text).taken] == ["unmatched"]
    assert [entry.code for _, entry in stage.engine.rejected.page("default")] == ["unmatched_feedback"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"eventType": "Bounce"}', '{"eventType": "Nope", "mail": {}}', "[" * 5_000]
)
def test_notification_that_cannot_be_read_is_kept(text):
    stage = Stage()
    assert [each.status for each in stage.run("feedback_notify", text=text).taken] == ["unmatched"]
    assert [entry.code for _, entry in stage.engine.rejected.page("default")] == ["unreadable_feedback"]


KINDS = {
    "permanent": ("failed", "5.1.1"),
    "transient": ("failed", "4.2.2"),
    "content": ("failed", "5.7.1"),
    "delayed": ("delayed", "4.4.1"),
    "delivered": ("delivered", "2.0.0"),
}
SAID = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([*KINDS, "complaint"]), st.integers(0, 4)), max_size=14)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(SAID)
def test_feedback_in_any_order_and_number_is_recorded_once_and_suppresses_as_reckoned(said):
    stage = Stage()
    addresses = ["ada@example.com", "ada@example.com", "ada@example.com", "Bob@example.com"]
    mails = [stage.mail(address, address[:3].lower()) for address in addresses]
    known: set[tuple[int, str]] = set()
    arrived: list[tuple[str, str, int]] = []
    suppressed: dict[str, str] = {}
    for number, kind, days in said:
        stage.pass_(days * 86_400 + 60)
        address = addresses[number].lower()
        if kind == "complaint":
            entry = {"emailAddress": addresses[number]}
            text = ses(
                stage, mails[number], "Complaint", "complaint", feedbackId=f"f{number}", complainedRecipients=[entry]
            )
            stage.run("feedback_notify", text=text)
        else:
            action, status = KINDS[kind]
            stage.run("feedback_receive", raw=dsn(mails[number], addresses[number], action, status))
        if (number, kind) in known:
            continue
        known.add((number, kind))
        arrived.append((address, kind, stage.now))
        if kind in ("permanent", "complaint"):
            suppressed[address] = "bounce" if kind == "permanent" else kind
        mine = [each for each in arrived if each[0] == address]
        since = max([at for _, other, at in mine if other == "delivered"], default=0)
        recent = [
            at for _, other, at in mine if other == "transient" and at > max(since, stage.now - 7 * 86_400_000_000 - 1)
        ]
        if kind == "transient" and len(recent) >= 3:
            suppressed[address] = "bounce"
    for who in ("ada", "bob"):
        events = stage.events(who, "mail_bounced", "mail_delayed", "mail_delivered", "mail_complained")
        mine = [number for number, address in enumerate(addresses) if address[:3].lower() == who]
        assert len(events) == sum(number in mine for number, _ in known)
    for address in ("ada@example.com", "bob@example.com"):
        assert stage.suppressed(address) == suppressed.get(address, "")
    assert stage.problems == []
