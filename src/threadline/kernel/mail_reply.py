"""What a mail server's refusal says about the recipient, by RFC 5321 and RFC 3463, and by the words of real servers."""

from __future__ import annotations

import re
from typing import Literal

Bounce = Literal["permanent", "transient", ""]

_STATUS = re.compile(r"\b([245])\.(\d{1,3})\.(\d{1,3})\b")
_NOT_THE_RECIPIENT = frozenset({"5.1.7", "5.1.8"})
"""Of 5.1.x: the sender's address is refused."""
_GONE = frozenset({"5.2.1"})
_FULL = frozenset({"5.2.2"})

_WHO = "user|recipient|mailbox|address|account|alias"
_UNKNOWN = re.compile(
    rf"(?i)({_WHO})\S*( \S+){{0,8}}? (unknown|not (found|exist|known)|does ?n.t exist|does not exist|disabled|inactive"
    rf"|suspended|no longer)|(unknown|no such|invalid|nonexistent|non-existent) (local )?({_WHO})|not our customer"
    "|no mailbox here|user doesn't have"
)
_FULL_WORDS = re.compile(
    r"(?i)(mailbox|quota)\S*( \S+){0,3}? (full|exceeded)|over ?quota|(full|exceeded) (mailbox|quota)"
)
_POLICY = re.compile(
    r"(?i)spam|black ?list|block|policy|prohibit|denied|relay|reputation|spf|dkim|dmarc|sender|verif|authenticat"
    r"|rate limit|content|virus|banned|too (large|big|many)"
)


def status_of(text: str) -> str:
    """The first enhanced status code (RFC 3463) in a text, such as ``5.1.1``; empty if there is none."""
    match = _STATUS.search(text)
    return match.group() if match else ""


def bounce_of(code: int, status: str, text: str) -> Bounce:
    """Whether a refusal is a bounce of the recipient; empty: it is about policy, size, content, sender or the server.

    ``code`` is the SMTP reply code (0: unknown), ``status`` the enhanced one (empty: unknown). What servers say about
    a recipient without an enhanced code also covers policy (550, RFC 5321 section 4.2.3), so the words decide, and a
    refusal whose words say nothing counts as transient: it must not suppress anybody by itself.
    """
    if status.startswith("5."):
        if status in _FULL:
            return "transient"
        if status in _GONE or (status.startswith("5.1.") and status not in _NOT_THE_RECIPIENT):
            return "permanent"
        # Exchange Online says 5.4.1 where there is no such recipient, others 5.0.0 or 5.7.1 for anything.
        return "permanent" if status in {"5.0.0", "5.4.1"} and _is_unknown(text) else ""
    if status.startswith("4.") or not 500 <= code < 600:
        return ""
    if code == 552 or _FULL_WORDS.search(text):
        return "transient" if _FULL_WORDS.search(text) else ""
    if _is_unknown(text):
        return "permanent"
    return "" if _POLICY.search(text) else "transient"


def _is_unknown(text: str) -> bool:
    return bool(_UNKNOWN.search(text)) or "recipient address rejected: access denied" in text.lower()
