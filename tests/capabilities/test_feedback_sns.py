"""Messages of SNS: what SNS has signed about a declared topic counts once; everything else is refused."""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64encode
from functools import cache
from itertools import count

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from tests.capabilities.feedback_stage import TOPIC, YAML, Stage, fake_web
from tests.capabilities.test_feedback_recording import ses
from threadline.kernel.errors import ThreadlineError
from threadline.wire.feedback import UnreadableFeedback
from threadline.wire.sns import ForgedMessage, check_addresses, read_envelope

CERTIFICATE_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
SUBSCRIBE_URL = f"https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=abc"

_NUMBERS = count()


@cache
def key_and_certificate(name: str) -> tuple[rsa.RSAPrivateKey, bytes]:
    """A key, and a certificate of it."""
    key = rsa.generate_private_key(65_537, 2_048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, start, start + dt.timedelta(365))
    return key, made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def message(
    text: str = "{}", version: str = "1", signer: str = "sns.amazonaws.com", **changes: str | None
) -> dict[str, str]:
    """A message that is signed as SNS does it, by the documented text, written here a second time."""
    type = changes.get("Type", "Notification")
    fields = {
        "Type": type,
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Message": text,
        "Timestamp": "2026-03-01T12:00:00.000Z",
        "SignatureVersion": version,
        "SigningCertURL": CERTIFICATE_URL,
    }
    if type == "Notification":
        fields |= {
            "Subject": "Amazon SES Email Event Notification",
            "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
        }
    else:
        fields |= {"SubscribeURL": SUBSCRIBE_URL, "Token": "abc"}
    fields = {name: value for name, value in {**fields, **changes}.items() if value is not None}
    names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    signed = "".join(f"{name}\n{fields[name]}\n" for name in names if name in fields)
    hash = {"1": hashes.SHA1(), "2": hashes.SHA256()}[version]
    fields["Signature"] = b64encode(
        key_and_certificate(signer)[0].sign(signed.encode(), padding.PKCS1v15(), hash)
    ).decode()
    return fields


def staged() -> Stage:
    """A stage on which SNS's certificate lies where it should."""
    # The routes cache certificates, so each stage has routes of its own.
    stage = Stage(yaml=f"{YAML}\n# {next(_NUMBERS)}")
    stage.engine.web = fake_web(
        pem=key_and_certificate("sns.amazonaws.com")[1], Confirm=b"<ConfirmSubscriptionResponse/>"
    )
    return stage


def post(stage: Stage, body: dict[str, str]) -> int:
    """Post a message to the webhook."""
    return stage.request("mail_sns", {"workspace": "default"}, body=json.dumps(body).encode(), method="POST").status


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("subject", ["Amazon SES", None])
def test_signed_notification_counts_once_however_often_it_is_posted(version, subject):
    stage = staged()
    text = ses(
        stage,
        stage.mail(),
        "Bounce",
        "bounce",
        bounceType="Permanent",
        feedbackId="f1",
        bouncedRecipients=[{"emailAddress": "ada@example.com"}],
    )
    body = message(text, version, Subject=subject)
    assert [post(stage, body) for _ in range(3)] == [200, 200, 200]
    assert len(stage.events("ada", "mail_bounced")) == 1
    assert stage.suppressed() == "bounce"
    assert stage.engine.web.asked == [CERTIFICATE_URL]


def forged(stage: Stage) -> dict[str, dict[str, str]]:
    """Messages that SNS has not sent, or not about our topic, each with a bounce that would suppress Ada."""
    recipients = [{"emailAddress": "ada@example.com"}]
    text = ses(
        stage, stage.mail(), "Bounce", "bounce", bounceType="Permanent", feedbackId="f", bouncedRecipients=recipients
    )
    foreign = "arn:aws:sns:eu-west-1:999999999999:feedback"
    urls = [
        "https://sns.eu-west-1.amazonaws.com.evil.example/x.pem",
        "https://evil.example/x.pem",
        "http://sns.eu-west-1.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com@evil.example/x.pem",
        "https://sns.eu-west-1.amazonaws.com/x.pem?y",
        "https://sns.eu-west-1.amazonaws.com:444/x.pem",
        "https://sns.evil.example#.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com/x.txt",
        "https://mysns.eu-west-1.amazonaws.com/x.pem",
        "https://s3.eu-west-1.amazonaws.com/sns/x.pem",
        "https://sns.eu-west-1.amazonaws.com/x.pem\n",
        "https://sns.eu-west-1.amazonaws.com/a/../x.pem",
        "",
        "https://sns.eu-west-1.amazonaws.com\\@evil.example/x.pem",
    ]
    good = message(text)
    return {
        "body": {**good, "Message": text.replace("Permanent", "Permanent ")},
        "signature": {**good, "Signature": good["Signature"][:-8] + "AAAAAA=="},
        "no signature": {**good, "Signature": ""},
        "version": {**good, "SignatureVersion": "2"},
        "other version": {**good, "SignatureVersion": "3"},
        "key": message(text, signer="evil.example"),
        "topic": message(text, TopicArn=foreign),
        "timestamp": {**good, "Timestamp": "2026-03-02T12:00:00.000Z"},
        "subject": {**good, "Subject": "another"},
        "type": {**message(text, Type="SubscriptionConfirmation"), "Type": "Notification"},
        **{f"certificate {url}": message(text, SigningCertURL=url) for url in urls},
    }


def test_forged_messages_are_refused_and_nothing_they_name_is_fetched():
    stage = staged()
    for name, body in forged(stage).items():
        asked = len(stage.engine.web.asked)
        with pytest.raises(ForgedMessage):
            post(stage, body)
        fetched = stage.engine.web.asked[asked:]
        assert fetched in ([], [CERTIFICATE_URL]), name
        assert stage.events("ada", "mail_bounced") == [], name
    assert stage.suppressed() == ""


def test_confirmation_of_a_declared_topic_is_fetched_and_no_other():
    stage = staged()
    assert post(stage, message(Type="SubscriptionConfirmation")) == 200
    assert stage.engine.web.asked == [CERTIFICATE_URL, SUBSCRIBE_URL]
    host = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=abc&TopicArn="
    other = "arn:aws:sns:eu-west-1:999999999999:feedback"
    for changes in (
        {"TopicArn": other, "SubscribeURL": host + other},
        {"SubscribeURL": host + other},
        {"SubscribeURL": "http://169.254.169.254/latest/meta-data"},
        {"SubscribeURL": SUBSCRIBE_URL.replace("amazonaws.com", "amazonaws.com.evil.example")},
        {"SubscribeURL": SUBSCRIBE_URL.replace("ConfirmSubscription", "DeleteTopic")},
        {"SubscribeURL": SUBSCRIBE_URL.replace("https", "http")},
        {"SubscribeURL": SUBSCRIBE_URL + "&Action=DeleteTopic"},
        {"SubscribeURL": SUBSCRIBE_URL + "\r\nx"},
    ):
        with pytest.raises(ForgedMessage):
            post(stage, message(Type="SubscriptionConfirmation", **changes))
    unsigned = {**message(Type="SubscriptionConfirmation"), "Signature": "AAAA"}
    with pytest.raises(ForgedMessage):
        post(stage, unsigned)
    assert stage.engine.web.asked == [CERTIFICATE_URL, SUBSCRIBE_URL]


def test_unsubscribing_is_not_undone():
    stage = staged()
    assert post(stage, message(Type="UnsubscribeConfirmation")) == 200
    assert stage.engine.web.asked == [CERTIFICATE_URL]


def test_without_declared_topics_nothing_is_believed():
    stage = Stage(yaml="")
    stage.engine.web = fake_web()
    with pytest.raises(ForgedMessage):
        post(stage, message())
    assert stage.engine.web.asked == []


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"\xff", b"[" * 50_000, b'{"Type": "Other"}', b'{"Type": "Notification", "Message": 1}']
)
def test_body_that_is_no_message_is_refused(body):
    stage = staged()
    with pytest.raises(UnreadableFeedback):
        stage.request("mail_sns", {"workspace": "default"}, body=body, method="POST")
    assert stage.engine.web.asked == []


@pytest.mark.parametrize(
    "host", ["sns.eu-west-1.amazonaws.com", "sns.us-gov-west-1.amazonaws.com", "sns.cn-north-1.amazonaws.com.cn"]
)
def test_hosts_of_sns_are_those_of_every_partition(host):
    body = message(SigningCertURL=f"https://{host}/SimpleNotificationService-0123456789abcdef.pem")
    check_addresses(read_envelope(json.dumps(body)), [TOPIC])


def test_errors_of_the_webhook_are_clients_errors():
    stage = staged()
    for body in forged(stage).values():
        with pytest.raises(ThreadlineError) as refused:
            post(stage, body)
        assert 400 <= refused.value.status < 500


def test_signed_notification_counts_for_the_workspace_that_its_mail_bears():
    stage = staged()
    text = ses(stage, stage.mail(), "Delivery", "delivery", recipients=["ada@example.com"])
    body = json.dumps(message(text)).encode()
    assert stage.request("mail_sns", {"workspace": "other"}, body=body, method="POST").status == 200
    assert len(stage.events("ada", "mail_delivered")) == 1
