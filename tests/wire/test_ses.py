"""Notifications of SES in every documented form mean what SES says; anything else is refused."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel.time import parse_time
from threadline.wire.feedback import Feedback, Received, UnreadableFeedback
from threadline.wire.ses import read_ses

AT = "2026-03-01T12:00:30.250Z"
MAIL = {
    "timestamp": "2026-03-01T12:00:00.000Z",
    "source": "Shop <news@shop.example>",
    "messageId": "0102-abc-000000",
    "sourceArn": "arn:aws:ses:eu-west-1:123456789012:identity/shop.example",
    "sendingAccountId": "123456789012",
    "destination": ["ada@example.com"],
    "headersTruncated": False,
    "headers": [{"name": "Message-ID", "value": "<" + "a" * 32 + "@shop.example>"}, {"name": "From", "value": "x"}],
    "commonHeaders": {"from": ["x"], "messageId": "0102-abc-000000", "subject": "Hello"},
    "tags": {"ses:source-ip": ["192.0.2.0"], "threadline-message": ["b" * 32], "threadline-workspace": ["eu"]},
}
ADA = {"emailAddress": "ada@example.com"}
FAILED = {**ADA, "action": "failed", "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 user unknown"}
BOUNCE = {"bounceSubType": "General", "bouncedRecipients": [FAILED], "timestamp": AT, "feedbackId": "f-1"}
COMPLAINT = {"complainedRecipients": [ADA], "timestamp": AT, "feedbackId": "f-2", "userAgent": "loop/1"}
SAID: dict[str, tuple[str, dict[str, Any], str | None, dict[str, Any]]] = {
    # what SES calls it: its member, what is in it, what it means, and how
    "Send": ("send", {}, "sent", {}),
    "Delivery": (
        "delivery",
        {"timestamp": AT, "recipients": ["ada@example.com"], "smtpResponse": "250 ok"},
        "delivered",
        {"text": "250 ok"},
    ),
    "DeliveryDelay": (
        "deliveryDelay",
        {"timestamp": AT, "delayType": "MailboxFull", "delayedRecipients": [ADA]},
        "delayed",
        {"text": "MailboxFull"},
    ),
    "Open": (
        "open",
        {"timestamp": AT, "userAgent": "Mozilla/5.0", "ipAddress": "192.0.2.1"},
        "opened",
        {"agent": "Mozilla/5.0"},
    ),
    "Click": (
        "click",
        {"timestamp": AT, "link": "https://a.example", "linkTags": None},
        "clicked",
        {"link": "https://a.example"},
    ),
    "Bounce": (
        "bounce",
        {**BOUNCE, "bounceType": "Permanent"},
        "bounced",
        {"bounce": "permanent", "code": "5.1.1", "text": "smtp; 550 5.1.1 user unknown"},
    ),
    "Complaint": (
        "complaint",
        {**COMPLAINT, "complaintFeedbackType": "abuse"},
        "complained",
        {"feedback": "abuse", "agent": "loop/1"},
    ),
    "Reject": ("reject", {"reason": "Bad content"}, "bounced", {"bounce": "content", "text": "Bad content"}),
    "Rendering Failure": (
        "failure",
        {"errorMessage": "no x", "templateName": "t"},
        "bounced",
        {"bounce": "content", "text": "no x"},
    ),
    "Subscription": ("subscription", {"contactList": "c", "timestamp": AT}, None, {}),
}


def notification(type: str, member: str, said: dict[str, Any], name: str = "eventType") -> dict[str, Any]:
    """A notification with members that nobody has documented yet."""
    return {name: type, "mail": MAIL, member: {**said, "new": [1]}, "newMember": {}}


@pytest.mark.parametrize("name", ["eventType", "notificationType"])
@pytest.mark.parametrize("type", SAID)
def test_documented_notification_means_what_it_says(type, name):
    member, said, kind, details = SAID[type]
    found = read_ses(json.dumps(notification(type, member, said, name)))
    if kind is None:
        assert found == []
        return
    (one,) = found
    assert isinstance(one, Feedback)
    assert (one.kind, dict(one.details), one.recipient) == (kind, details, "ada@example.com")
    assert one.at == parse_time(said.get("timestamp", MAIL["timestamp"]))
    assert (one.about[0], one.about[1]) == ("b" * 32, "<" + "a" * 32 + "@shop.example>")
    assert (one.provider_id, one.workspace) == ("0102-abc-000000", "eu")
    assert read_ses(json.dumps(notification(type, member, said, name))) == found


@pytest.mark.parametrize(
    ("changes", "bounce"),
    [
        ({"bounceType": "Permanent"}, "permanent"),
        ({"bounceType": "Transient"}, "transient"),
        ({"bounceType": "Undetermined"}, "transient"),
        ({}, "transient"),
        ({"bounceType": "permanent"}, "transient"),
        ({"bounceType": "Transient", "bounceSubType": "MailboxFull"}, "transient"),
        ({"bounceType": "Transient", "bounceSubType": "ContentRejected"}, "content"),
        ({"bounceType": "Transient", "bounceSubType": "MessageTooLarge"}, "content"),
        ({"bounceType": "Permanent", "bounceSubType": "Suppressed", "bouncedRecipients": [ADA]}, "permanent"),
        ({"bounceType": "Permanent", "bounceSubType": "OnAccountSuppressionList"}, "permanent"),
        ({"bounceType": "Permanent", "bouncedRecipients": [{**FAILED, "status": "4.0.0"}]}, "transient"),
        ({"bounceType": "Permanent", "bouncedRecipients": [{**FAILED, "action": "delayed"}]}, "transient"),
    ],
)
def test_only_what_ses_calls_permanent_is(changes, bounce):
    (found,) = read_ses(json.dumps(notification("Bounce", "bounce", {**BOUNCE, **changes})))
    assert found.details["bounce"] == bounce


@pytest.mark.parametrize("type", ["not-spam", "auth-failure"])
def test_complaint_without_blame_is_none(type):
    assert (
        read_ses(json.dumps(notification("Complaint", "complaint", {**COMPLAINT, "complaintFeedbackType": type}))) == []
    )


def test_each_recipient_has_feedback_of_its_own():
    bob = {"emailAddress": "Bob@example.com"}
    found = read_ses(json.dumps(notification("Bounce", "bounce", {**BOUNCE, "bouncedRecipients": [FAILED, bob]})))
    assert [each.recipient for each in found] == ["ada@example.com", "Bob@example.com"]
    assert len({each.key for each in found}) == 2


@pytest.mark.parametrize("encoding", ["UTF-8", "BASE64"])
def test_received_mail_is_given_as_it_came(encoding):
    raw = "From: ada@example.com\r\n\r\nHé\r\n"
    content = b64encode(raw.encode()).decode() if encoding == "BASE64" else raw
    action = {"type": "SNS", "topicArn": "arn", "encoding": encoding}
    document = {
        "notificationType": "Received",
        "content": content,
        "mail": {**MAIL, "source": "ada@example.com"},
        "receipt": {"recipients": ["reply@shop.example"], "action": action},
    }
    assert read_ses(json.dumps(document)) == [Received(raw.encode(), ("reply@shop.example",), "ada@example.com")]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=10)
    | st.sampled_from(["Bounce", "Received", "2026-13-01", AT, "BASE64", "=", "x" * 400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(SAID)), st.data())
def test_notification_with_anything_anywhere_is_read_or_refused(type, data):
    member, said, _, _ = SAID[type]
    document = json.loads(json.dumps(notification(type, member, said)))
    for _ in range(data.draw(st.integers(1, 3))):
        node, path = document, []
        while isinstance(node, dict | list) and node and (not path or data.draw(st.booleans())):
            path.append(
                (node, data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))))
            )
            node = node[path[-1][1]]
        if path:
            path[-1][0][path[-1][1]] = data.draw(JSON)
    try:
        found = read_ses(json.dumps(document))
    except UnreadableFeedback:
        return
    assert all(isinstance(each, Feedback | Received) for each in found)
    assert len(found) <= 50


@given(st.text(max_size=50) | st.binary(max_size=50))
def test_anything_else_is_refused(text):
    with pytest.raises(UnreadableFeedback):
        read_ses(text)
