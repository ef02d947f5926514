"""Mails that came in: bounces, complaints and replies as feedback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from threadline.capabilities.reach.feedback.recording import Taken, keep, take
from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.wire.feedback import Feedback, Kind

if TYPE_CHECKING:
    from threadline.wire.mime.delivery_status import Recipient
    from threadline.wire.mime.mail import Mail

REPLY_LENGTH_MAX = 10_000
"""Characters of a reply that its event holds."""
RAW_LENGTH_MAX = 100_000
"""Characters of a mail that the rejected log keeps."""
_KINDS: dict[str, Kind] = {"failed": "bounced", "delayed": "delayed", "delivered": "delivered"}


class TakenMail(NamedTuple):
    """What a mail was, and what became of what it says."""

    kind: str
    taken: list[Taken]


def take_mail(
    ports: Ports, workspace: str, raw: bytes, recipients: Sequence[str] = (), sender: str | None = None
) -> TakenMail:
    """Record what a raw mail says. What can't be matched is kept in the rejected log, apart from automatic replies."""
    # Its hundred expressions are a tenth of what it takes to start, and few processes ever read a mail.
    from threadline.wire.mime.mail import read_mail

    mail = read_mail(raw, recipients, sender)
    feedbacks = list(feedback_of(mail, raw))
    shown = {
        "kind": mail.kind,
        "from": mail.sender,
        "to": list(mail.to),
        "subject": mail.subject,
        "raw": raw[:RAW_LENGTH_MAX].decode("utf-8", "backslashreplace"),
    }
    # A complaint that was taken back is understood, and nothing follows from it.
    if not feedbacks and mail.kind != "auto_reply" and not mail.feedback:
        keep(ports, workspace, _key(mail, raw), "unreadable_mail", "a report that names no recipient", shown)
        return TakenMail(mail.kind, [Taken("unmatched")])
    return TakenMail(mail.kind, [take(ports, workspace, feedback, shown) for feedback in feedbacks])


def feedback_of(mail: Mail, raw: bytes) -> Iterator[Feedback]:
    """What a mail says, one entry for each recipient."""
    about = (*mail.to, *mail.about)
    if mail.kind == "reply":
        details = {"subject": mail.subject, "text": mail.text[:REPLY_LENGTH_MAX], "sender": mail.sender}
        yield Feedback("replied", short_hash("mail", "replied", _key(mail, raw)), None, about, details=details)
    elif mail.kind == "complaint":
        # A mail of ours has one recipient, and many providers leave out or replace the address of who complains.
        key = short_hash("mail", "complained", _key(mail, raw))
        yield Feedback("complained", key, None, about, details={"feedback": mail.feedback})
    elif mail.kind in ("bounce", "delay", "delivered"):
        reached = tuple(recipient.address for recipient in mail.recipients if recipient.action == "delivered")
        for recipient in mail.recipients:
            kind = _KINDS[recipient.action]
            key = short_hash("mail", kind, _key(mail, raw), recipient.address.lower())
            yield Feedback(
                kind, key, None, about, recipient=recipient.address, details=_details(recipient), reached=reached
            )


def _details(recipient: Recipient) -> dict[str, str]:
    details = {"code": recipient.code, "text": recipient.text}
    if recipient.action == "failed":
        details["bounce"] = recipient.bounce
    return {name: value for name, value in details.items() if value}


def _key(mail: Mail, raw: bytes) -> str:
    # Its own id stays when it is delivered twice, while Received headers do not; without one there are only the bytes.
    return mail.id or short_hash(raw.decode("latin-1"))
