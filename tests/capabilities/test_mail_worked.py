"""The worked table of the page on mail: when each of four marketing mails goes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.capabilities.mail_stage import SHOP, STARTS_AT, MailStage
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND

PAGE = Path(__file__).parents[2] / "docs" / "mail.md"
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")
MONDAY = STARTS_AT - 11 * HOUR
"""Midnight in Berlin, an hour ahead of UTC in March."""


def instant(text: str) -> int:
    day, hour, minute = re.split("[ :]", text)
    return MONDAY + DAYS.index(day) * DAY + int(hour) * HOUR + int(minute) * MINUTE


def test_mails_go_when_the_table_says() -> None:
    rows = re.findall(rf"^\| ((?:{'|'.join(DAYS)}) [\d:]+) \| ([^|]+?) \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 4
    section = "  timezone: Europe/Berlin\n  quiet_hours: {from: '21:00', to: '08:00'}\n  caps: [{mails: 2, per: 2d}]\n"
    stage = MailStage(SHOP + section)
    stage.now = MONDAY
    stage.person()
    asked, sent = [instant(row[0]) for row in rows], []
    for now in range(MONDAY, MONDAY + 4 * DAY, 30 * MINUTE):
        stage.now = now
        if now in asked:
            stage.ask("mail_send", id="ada", template="welcome", request=str(now))
        stage.now = now + SECOND
        stage.work()
        sent += [now] * (len(stage.box.sent) - len(sent))
    assert sent == [instant(row[1]) for row in rows]
