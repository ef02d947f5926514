"""Messages of Amazon SNS over HTTPS: the envelope, and whether it comes from SNS.

Anybody can post to a public address. What counts is signed by a certificate that the message names, so the address of
that certificate is pinned; and it is about a topic that the operator has declared, so that nobody's own topic will do.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Collection
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import msgspec

from threadline.kernel.errors import Forbidden, InvalidSetting
from threadline.kernel.extra import from_source
from threadline.kernel.typed import prepared
from threadline.wire.feedback import UnreadableFeedback

CERTIFICATE_BYTES_MAX = 16 * 1_024

_HOST = r"https://sns\.[a-z]{2}[a-z0-9-]{1,30}\.amazonaws\.com(?:\.cn)?"
_CERTIFICATE = re.compile(_HOST + r"/[A-Za-z0-9-]{1,100}\.pem")
_CONFIRMATION = re.compile(_HOST + r"/\?[A-Za-z0-9%&=_.:+/-]{1,2000}")
_SIGNED = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
_SIGNED["UnsubscribeConfirmation"] = _SIGNED["SubscriptionConfirmation"]


class ForgedMessage(Forbidden):
    """This does not come from SNS, or not from a topic that is declared; nothing of it was used."""

    code = "forged_message"


@prepared
class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A message of SNS. Its members bear the names of SNS."""

    type: Literal["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"] = msgspec.field(name="Type")
    message_id: str = msgspec.field(name="MessageId")
    topic: str = msgspec.field(name="TopicArn")
    message: str = msgspec.field(name="Message")
    timestamp: str = msgspec.field(name="Timestamp")
    subject: str | None = msgspec.field(name="Subject", default=None)
    signature_version: str = msgspec.field(name="SignatureVersion", default="")
    signature: str = msgspec.field(name="Signature", default="")
    certificate_url: str = msgspec.field(name="SigningCertURL", default="")
    subscribe_url: str = msgspec.field(name="SubscribeURL", default="")
    token: str = msgspec.field(name="Token", default="")

    @property
    def signed_text(self) -> bytes:
        """What the signature is of: names and values, each on a line of its own; a subject only where there is one."""
        values = {
            "Message": self.message,
            "MessageId": self.message_id,
            "Subject": self.subject,
            "SubscribeURL": self.subscribe_url,
            "Timestamp": self.timestamp,
            "Token": self.token,
            "TopicArn": self.topic,
            "Type": self.type,
        }
        pairs = ((name, values[name]) for name in _SIGNED[self.type])
        return "".join(f"{name}\n{value}\n" for name, value in pairs if value is not None).encode()


def read_envelope(body: str | bytes) -> Envelope:
    """The message in a body. Raises `UnreadableFeedback`."""
    try:
        return msgspec.json.decode(body, type=Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableFeedback(f"no message of SNS: {error}") from None


def check_addresses(envelope: Envelope, topics: Collection[str]) -> None:
    """Raise `ForgedMessage` for another topic, and for a certificate or a confirmation that is not of SNS.

    To be asked before anything that the message names is fetched.
    """
    if envelope.topic not in topics:
        raise ForgedMessage(
            f"TopicArn: {envelope.topic[:200]!r} is not declared", hint="List it under `feedback: {topics: [...]}`."
        )
    if not _CERTIFICATE.fullmatch(envelope.certificate_url):
        raise ForgedMessage("SigningCertURL: not a certificate of SNS")
    if envelope.type != "Notification":
        asked = parse_qs(urlsplit(envelope.subscribe_url).query) if len(envelope.subscribe_url) <= 2_100 else {}
        if not _CONFIRMATION.fullmatch(envelope.subscribe_url) or asked.get("TopicArn") != [envelope.topic]:
            raise ForgedMessage("SubscribeURL: not a confirmation of SNS for this topic")
        if asked.get("Action") != ["ConfirmSubscription"]:
            raise ForgedMessage("SubscribeURL: does something else than to confirm")


def check_signature(envelope: Envelope, certificate: bytes) -> None:
    """Raise `ForgedMessage` unless the key of this certificate (PEM) has signed the message."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
        from cryptography.x509 import load_pem_x509_certificate
    except ImportError:
        raise InvalidSetting(
            "messages of SNS cannot be checked: cryptography is not installed", hint=from_source("mail")
        ) from None
    algorithms = {"1": hashes.SHA1(), "2": hashes.SHA256()}
    algorithm = algorithms.get(envelope.signature_version)
    if algorithm is None:
        raise ForgedMessage("SignatureVersion: neither 1 nor 2")
    try:
        key = load_pem_x509_certificate(certificate[:CERTIFICATE_BYTES_MAX]).public_key()
        if not isinstance(key, rsa.RSAPublicKey):
            raise ForgedMessage("SigningCertURL: its key is not RSA")
        key.verify(b64decode(envelope.signature, validate=True), envelope.signed_text, padding.PKCS1v15(), algorithm)
    except (InvalidSignature, binascii.Error, ValueError):
        raise ForgedMessage("Signature: not that of the message") from None
