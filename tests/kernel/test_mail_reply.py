"""Which refusals are bounces of the recipient, by replies of real servers."""

from __future__ import annotations

import pytest

from threadline.kernel.mail_reply import bounce_of, status_of

REPLIES = [
    # Postfix, Exim, Gmail, Exchange Online, Yahoo, qmail, Sendmail
    (550, "5.1.1 <a@b.example>: Recipient address rejected: User unknown in virtual mailbox table", "permanent"),
    (550, "Unrouteable address", "transient"),
    (550, "5.1.1 The email account that you tried to reach does not exist. Please try", "permanent"),
    (550, "5.4.1 Recipient address rejected: Access denied. AS(201806281)", "permanent"),
    (554, "delivery error: dd This user doesn't have a yahoo.com account (a@yahoo.com) [0]", "permanent"),
    (553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", ""),
    (550, "5.2.1 The email account that you tried to reach is disabled", "permanent"),
    (552, "5.2.2 The email account that you tried to reach is over quota", "transient"),
    (550, "Mailbox quota exceeded", "transient"),
    (550, "No such user here", "permanent"),
    (551, "User not local; please try <a@c.example>", "transient"),
    (550, "Requested action not taken: mailbox unavailable", "transient"),
    # about something else than the recipient
    (550, "5.7.1 Service unavailable, Client host [192.0.2.1] blocked using Spamhaus", ""),
    (554, "5.7.1 <a@b.example>: Relay access denied", ""),
    (550, "Administrative prohibition", ""),
    (550, "relay not permitted", ""),
    (550, "Sender verify failed", ""),
    (550, "5.1.8 <a@b.example>: Sender address rejected: Domain not found", ""),
    (550, "5.7.26 This mail has been blocked because the sender is unauthenticated", ""),
    (552, "5.3.4 Message size exceeds fixed limit", ""),
    (552, "Requested mail action aborted: exceeded storage allocation", ""),
    (554, "5.6.0 Message content rejected", ""),
    # not for good
    (450, "4.2.1 <a@b.example>: User unknown, try later", ""),
    (421, "4.7.0 Too many connections", ""),
    (250, "2.1.5 no such user, but I forward it", ""),
]


@pytest.mark.parametrize(("code", "text", "expected"), REPLIES)
def test_a_refusal_is_a_bounce_only_where_it_is_about_the_recipient(code: int, text: str, expected: str) -> None:
    assert bounce_of(code, status_of(text), text) == expected


def test_a_status_alone_decides_where_there_is_no_reply_code() -> None:
    assert bounce_of(0, "5.1.1", "") == "permanent"
    assert bounce_of(0, "5.2.2", "") == "transient"
    assert bounce_of(0, "4.2.2", "Mailbox full") == ""
