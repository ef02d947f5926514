"""Notifications of Amazon SES: as SNS posts them, signed, and as they lie in a queue that only we can read."""

from __future__ import annotations

from collections.abc import Collection

from threadline.capabilities.reach.feedback.mails import take_mail
from threadline.capabilities.reach.feedback.recording import Taken, keep, take
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import is_workspace
from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.wire.feedback import Received, UnreadableFeedback
from threadline.wire.ses import read_ses
from threadline.wire.sns import CERTIFICATE_BYTES_MAX, check_addresses, check_signature, read_envelope

CERTIFICATES_MAX = 16
_TEXT_LENGTH_MAX = 100_000


class Certificates:
    """Certificates of SNS by address, fetched once in a process. Only addresses that were checked are asked for."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def at(self, ports: Ports, url: str) -> bytes:
        """The certificate at an address."""
        certificate = self._known.get(url)
        if certificate is None:
            if len(self._known) >= CERTIFICATES_MAX:
                self._known.clear()
            certificate = self._known[url] = ports.web.get(url, CERTIFICATE_BYTES_MAX)
        return certificate


def take_envelope(
    ports: Ports, workspace: str, body: bytes, topics: Collection[str], certificates: Certificates
) -> list[Taken]:
    """Take a message that anybody may have posted. Raises `ForgedMessage` for one that SNS has not sent."""
    envelope = read_envelope(body)
    check_addresses(envelope, topics)
    check_signature(envelope, certificates.at(ports, envelope.certificate_url))
    if envelope.type == "SubscriptionConfirmation":
        ports.web.get(envelope.subscribe_url, CERTIFICATE_BYTES_MAX)
    if envelope.type != "Notification":
        return []
    return take_notification(ports, workspace, envelope.message, of_any=True)


def take_queued(ports: Ports, workspace: str, text: str) -> list[Taken]:
    """Take a message from a queue that a topic writes to, in the envelope of SNS or raw: about mails of this workspace.

    Whoever hands it in may speak for their own workspace only.
    """
    try:
        envelope = read_envelope(text)
    except UnreadableFeedback:
        return take_notification(ports, workspace, text)
    return take_notification(ports, workspace, envelope.message) if envelope.type == "Notification" else []


def take_notification(ports: Ports, workspace: str, text: str, *, of_any: bool = False) -> list[Taken]:
    """Record what SES says. What cannot be read is kept in the rejected log. Raises `NotYet`."""
    try:
        feedback = read_ses(text)
    except InvalidValue as error:
        key = short_hash(text)
        keep(ports, workspace, key, "unreadable_feedback", str(error), {"text": text[:_TEXT_LENGTH_MAX]})
        return [Taken("unmatched")]
    taken: list[Taken] = []
    for item in feedback:
        if isinstance(item, Received):
            taken += take_mail(ports, workspace, item.raw, item.recipients, item.sender).taken
        else:
            # One topic serves all workspaces: a mail bears the name of its own.
            named = of_any and is_workspace(item.workspace)
            taken.append(take(ports, item.workspace if named else workspace, item))
    return taken
