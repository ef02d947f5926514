"""What Amazon SES says about mails: event publishing, feedback notifications, and mails that it has received."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from threadline.kernel.errors import InvalidValue
from threadline.kernel.ids import short_hash
from threadline.kernel.time import parse_time
from threadline.wire.feedback import (
    COMPLAINT_TYPES_WITHOUT_BLAME,
    OWN_HEADER,
    Bounce,
    Feedback,
    Kind,
    Received,
    UnreadableFeedback,
)

MESSAGE_TAG, WORKSPACE_TAG = "threadline-message", "threadline-workspace"
"""Tags of a mail: the id of its effect, and its workspace."""
RECIPIENTS_MAX = 50
"""SES sends one mail to no more."""
TEXT_LENGTH_MAX = 500

_IGNORED = frozenset({"Subscription", "AmazonSnsSubscriptionSucceeded"})
"""Of contact lists of SES, which Threadline does not use; and that a topic was set up."""
_KINDS: dict[str, tuple[str, Kind]] = {
    "Send": ("send", "sent"),
    "Delivery": ("delivery", "delivered"),
    "DeliveryDelay": ("deliveryDelay", "delayed"),
    "Open": ("open", "opened"),
    "Click": ("click", "clicked"),
    "Bounce": ("bounce", "bounced"),
    "Complaint": ("complaint", "complained"),
    "Reject": ("reject", "bounced"),
    "Rendering Failure": ("failure", "bounced"),
}

Document = Mapping[str, Any]


def read_ses(text: str | bytes) -> list[Feedback | Received]:
    """What a notification says, one entry for each recipient; nothing for types that say nothing about a mail.

    Unknown members are passed over. Raises `UnreadableFeedback`.
    """
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableFeedback(f"the notification is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UnreadableFeedback("the notification is no JSON object")
    type = _text(document.get("eventType")) or _text(document.get("notificationType"))
    if type in _IGNORED:
        return []
    if type == "Received":
        return [_received(document)]
    if type not in _KINDS:
        raise UnreadableFeedback(f"eventType or notificationType: {type[:100]!r} is none that SES documents")
    member, kind = _KINDS[type]
    return list(_feedback(type, kind, _object(document, member), _object(document, "mail")))


def _feedback(type: str, kind: Kind, content: Document, mail: Document) -> Iterator[Feedback]:
    provider_id = _text(mail.get("messageId"))[:200]
    if not provider_id:
        raise UnreadableFeedback("mail.messageId: missing")
    tags = mail.get("tags")
    about = (_tag(tags, MESSAGE_TAG), *_message_ids(mail))
    at = _time(content.get("timestamp")) or _time(mail.get("timestamp"))
    if kind == "complained" and _text(content.get("complaintFeedbackType")) in COMPLAINT_TYPES_WITHOUT_BLAME:
        return
    for recipient, entry in _recipients(kind, content, mail):
        own = _text(content.get("feedbackId")) or f"{provider_id} {content.get('timestamp')} {content.get('link')}"
        yield Feedback(
            kind=kind,
            key=short_hash("ses", type, own, recipient.lower()),
            at=at,
            about=tuple(id for id in about if id),
            provider_id=provider_id,
            recipient=recipient,
            workspace=_tag(tags, WORKSPACE_TAG),
            details={name: value for name, value in _details(type, content, entry).items() if value},
        )


def _recipients(kind: Kind, content: Document, mail: Document) -> list[tuple[str, Document]]:
    member = {"bounced": "bouncedRecipients", "complained": "complainedRecipients", "delayed": "delayedRecipients"}
    listed = content.get(member.get(kind, "recipients"))
    if not isinstance(listed, list) or not listed:
        listed = mail.get("destination")
    recipients: list[tuple[str, Document]] = []
    for recipient in listed[:RECIPIENTS_MAX] if isinstance(listed, list) else ():
        if isinstance(recipient, str):
            recipients.append((recipient[:320], {}))
        elif isinstance(recipient, dict) and isinstance(recipient.get("emailAddress"), str):
            recipients.append((recipient["emailAddress"][:320], recipient))
    return recipients or [("", {})]


def _details(type: str, content: Document, entry: Document) -> dict[str, Any]:
    status, diagnostic = _text(entry.get("status")), _text(entry.get("diagnosticCode"))[:TEXT_LENGTH_MAX]
    if type == "Bounce":
        subtype = _text(content.get("bounceSubType"))
        return {"bounce": _bounce(content, entry, subtype), "code": status, "text": diagnostic or subtype}
    if type == "Reject":
        return {"bounce": "content", "text": _text(content.get("reason"))}
    if type == "Rendering Failure":
        return {"bounce": "content", "text": _text(content.get("errorMessage"))[:TEXT_LENGTH_MAX]}
    if type == "Complaint":
        feedback = _text(content.get("complaintFeedbackType")) or _text(content.get("complaintSubType"))
        return {"feedback": feedback[:100], "agent": _text(content.get("userAgent"))[:TEXT_LENGTH_MAX]}
    if type == "DeliveryDelay":
        return {"code": status, "text": diagnostic or _text(content.get("delayType"))}
    if type == "Delivery":
        return {"text": _text(content.get("smtpResponse"))[:TEXT_LENGTH_MAX]}
    return {
        "link": _text(content.get("link"))[:2_000],
        "agent": _text(content.get("userAgent"))[:TEXT_LENGTH_MAX],
    }


def _bounce(content: Document, entry: Document, subtype: str) -> Bounce:
    """Only what SES calls permanent is, and of the recipients only those whom it has given up on."""
    if subtype in ("ContentRejected", "AttachmentRejected", "MessageTooLarge"):
        return "content"
    delayed = _text(entry.get("action")).lower() == "delayed" or _text(entry.get("status")).startswith("4.")
    return "permanent" if content.get("bounceType") == "Permanent" and not delayed else "transient"


def _received(document: Document) -> Received:
    receipt, mail = _object(document, "receipt"), _object(document, "mail")
    content = document.get("content")
    if not isinstance(content, str):
        raise UnreadableFeedback("content: missing; let the receipt rule send the whole mail to the topic")
    action = receipt.get("action")
    encoded = isinstance(action, dict) and _text(action.get("encoding")).upper() == "BASE64"
    try:
        raw = b64decode(content, validate=False) if encoded else content.encode("utf-8", "surrogatepass")
    except binascii.Error as error:
        raise UnreadableFeedback(f"content: not Base64: {error}") from None
    recipients = receipt.get("recipients") or mail.get("destination")
    listed = recipients[:RECIPIENTS_MAX] if isinstance(recipients, list) else []
    return Received(
        raw, tuple(recipient for recipient in listed if isinstance(recipient, str)), _text(mail.get("source"))
    )


def _message_ids(mail: Document) -> Iterator[str]:
    headers = mail.get("headers")
    for header in headers[:100] if isinstance(headers, list) else ():
        if isinstance(header, dict) and _text(header.get("name")).lower() in ("message-id", OWN_HEADER):
            yield _text(header.get("value"))[:500]
    shown = mail.get("commonHeaders")
    if isinstance(shown, dict):
        yield _text(shown.get("messageId"))[:500]


def _object(document: Document, member: str) -> Document:
    value = document.get(member)
    if not isinstance(value, dict):
        raise UnreadableFeedback(f"{member}: missing")
    return value


def _tag(tags: Any, name: str) -> str:
    values = tags.get(name) if isinstance(tags, dict) else None
    return _text(values[0])[:300] if isinstance(values, list) and values else ""


def _time(value: Any) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        return parse_time(value)
    except InvalidValue:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
