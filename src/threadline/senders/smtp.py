"""Mail over SMTP: connections that stay open, and what each reply means for the effect, the recipient and the queue."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from threadline.kernel.effect import Effect
from threadline.kernel.errors import OutcomeUnknown
from threadline.kernel.mail_reply import bounce_of
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome
from threadline.senders.smtp_connection import (
    Connection,
    Lost,
    Mail,
    Refused,
    Reply,
    Server,
    Step,
    Unanswered,
    Unsendable,
)

PROVIDER = "smtp"
MAIL_SENT, MAIL_BOUNCED = "mail_sent", "mail_bounced"
IDLE_SECONDS_MAX = 30.0
"""An idle connection that is older is not used again: what stands between may have dropped it without a word."""
RETRY_SECONDS = 60.0
GREYLISTED_SECONDS = 300.0
RETRY_SECONDS_MAX = 3_600.0
_BEFORE_THE_MAIL = frozenset({"connect", "hello", "tls", "login"})
_SERVER_CODES = frozenset({530, 535, 538})
"""Of MAIL: the server wants a login, or refuses it; other messages will meet the same."""
_GREYLISTED = re.compile(r"(?i)gr[ea]y.?list")
_AGAIN_IN = re.compile(r"(?i)(?:in|after|for) (\d{1,5}) ?(s|sec|seconds?|m|min|minutes?)\b")
_QUEUED_AS = re.compile(r"(?i)(?:queued as|id=|queueid=|message accepted for delivery:?) ?<?([\w.+@:/-]+)")


class _Idle(NamedTuple):
    connection: Connection
    since: float
    """By the monotonic clock."""


class SmtpSender:
    """Sends effects of the kind ``mail`` to one server. Thread-safe: a connection serves one message at a time."""

    kind = "mail"

    def __init__(self, server: Server, timeout_seconds: float) -> None:
        self._server = server
        self._timeout = timeout_seconds
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        """The connection used last is used next, so that those that are too many become old."""

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """See `Sender`. Raises `OutcomeUnknown` where the message may have been accepted."""
        data = effect.data
        mail = Mail(data["message"], data["from"], data["to"], bool(data.get("smtputf8")))
        try:
            reply = self._handed_over(mail)
        except Refused as refused:
            return outcome_of(refused.step, refused.reply, data["record"])
        except Unsendable as error:
            return Outcome(type=EFFECT_PARKED, parked=str(error))
        except Lost as error:
            failure = {"error": str(error)}
            return Outcome(type=EFFECT_RETRIED, properties=failure, retry_after_seconds=0.0, destination="failing")
        except Unanswered as error:
            raise OutcomeUnknown(
                f"the message was handed over to {self._server.host}, which did not answer: {error}"
            ) from None
        sent = {**data["record"], "provider": PROVIDER, "provider_id": provider_id(reply)}
        return Outcome(type=MAIL_SENT, properties=sent)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for pooled in idle:
            pooled.connection.close()

    def _handed_over(self, mail: Mail) -> Reply:
        deadline = time.monotonic() + self._timeout
        while (connection := self._taken()) is not None:
            try:
                return self._transmitted(connection, mail, deadline)
            except Lost:
                continue  # a server may end an idle connection at any time; that says nothing about the message
            except Refused as refused:
                if refused.reply.code != 421:
                    raise
        return self._transmitted(Connection(self._server, deadline), mail, deadline)

    def _transmitted(self, connection: Connection, mail: Mail, deadline: float) -> Reply:
        try:
            reply = connection.transmit(mail, deadline)
        except (Refused, Unsendable):
            self._put_back(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._put_back(connection)
        return reply

    def _taken(self) -> Connection | None:
        """The connection that was used last; None if that is too long ago, and all the others as well."""
        oldest = time.monotonic() - IDLE_SECONDS_MAX
        with self._lock:
            if self._idle and self._idle[-1].since >= oldest:
                return self._idle.pop().connection
        self.close()
        return None

    def _put_back(self, connection: Connection) -> None:
        if connection.is_open:
            with self._lock:
                self._idle.append(_Idle(connection, time.monotonic()))


def outcome_of(step: Step, reply: Reply, record: Mapping[str, Any]) -> Outcome:
    """What a refusal means; by RFC 5321, section 4.2.1, 4yz asks to come again and 5yz not to."""
    code = f"{reply.code} {reply.status}".strip()
    details = {"step": step, "code": code, "text": reply.text}
    if step in _BEFORE_THE_MAIL or reply.code in _SERVER_CODES or reply.code == 421:
        # Nothing to do with this message, so none is given up for it: the queue waits until it is mended.
        return Outcome(type=EFFECT_RETRIED, properties=details, retry_after_seconds=0.0, destination="failing")
    if reply.code < 500:
        # What says something about the server: 4.3.x, and a sender that it cannot take now.
        failing = reply.status.startswith("4.3.") or step == "mail"
        return Outcome(
            type=EFFECT_RETRIED,
            properties=details,
            retry_after_seconds=_asked_to_wait(reply),
            destination="failing" if failing else "healthy",
        )
    if step != "mail" and (bounce := bounce_of(reply.code, reply.status, reply.text)):
        status = reply.status or str(reply.code)
        bounced = {**record, "bounce": bounce, "code": status, "text": reply.text, "provider": PROVIDER}
        return Outcome(type=MAIL_BOUNCED, properties=bounced)
    about_all = step == "mail" and reply.code != 552
    return Outcome(
        type=EFFECT_PARKED,
        properties=details,
        parked=f"the server refused it ({step}): {reply}",
        destination="failing" if about_all else "healthy",
    )


def provider_id(reply: Reply) -> str:
    """The server's own id of the message it has accepted, or else its words."""
    match = _QUEUED_AS.search(reply.text)
    return match.group(1) if match else reply.text[:100]


def _asked_to_wait(reply: Reply) -> float:
    match = _AGAIN_IN.search(reply.text)
    if match is not None:
        seconds = float(match.group(1)) * (60 if match.group(2).lower().startswith("m") else 1)
        return min(max(seconds, RETRY_SECONDS), RETRY_SECONDS_MAX)
    return GREYLISTED_SECONDS if _GREYLISTED.search(reply.text) else RETRY_SECONDS
