"""Counts of what became of mails, from the rows of their events: nothing adds up beside them that could drift."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.reach.feedback.events import (
    COUNTED,
    FETCHES,
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_FETCHED,
    MAIL_OPENED,
    MAIL_SKIPPED,
)
from threadline.capabilities.reach.feedback.machines import Click, scanned
from threadline.capabilities.reach.feedback.rows import MailRow
from threadline.kernel.disclosure import PERSONAL, not_personal
from threadline.kernel.key_fields import key_fields

_BY_PEOPLE = FETCHES | {MAIL_OPENED, MAIL_CLICKED}


class Count(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How often something happened."""

    unique: Annotated[int, Meta(description="To so many mails.")] = 0
    total: Annotated[int, Meta(description="So many times.")] = 0
    machine_unique: Annotated[int, Meta(description="Of opens and clicks: to so many mails by machines.")] = 0
    machine_total: Annotated[int, Meta(description="So many times by machines.")] = 0
    repeats: Annotated[
        int, Meta(description="Of opens and clicks: further requests, which only repeated others and count as neither.")
    ] = 0


@not_personal
class Counts(msgspec.Struct, kw_only=True):
    """Results of some mails. Opens and clicks of machines stand apart."""

    sent: Count
    skipped: Count
    delivered: Count
    delayed: Count
    opened: Count
    clicked: Count
    bounced: Count
    complained: Count
    replied: Count
    bounces: Annotated[
        dict[str, int], Meta(description="Mails that bounced, by kind: permanent, transient, content.")
    ] = {}
    skip_reasons: Annotated[
        dict[str, int],
        Meta(
            description="Mails that were not sent, by why: no_address, unsubscribed, suppressed:bounce, frequency_cap "
            "and the like."
        ),
    ] = {}


@key_fields("template", "step", "arm", "counts")
class PartCounts(msgspec.Struct, kw_only=True):
    """The counts of one template, step and arm."""

    template: str
    step: str
    arm: str
    counts: Counts


LINKS_MAX = 100
"""Links of which clicks are counted one by one."""


@key_fields("link", "unique", "total")
@not_personal
class LinkClicks(msgspec.Struct, kw_only=True):
    """Clicks of people on a link."""

    link: Annotated[str, PERSONAL]
    unique: Annotated[int, Meta(description="In so many mails.")]
    total: Annotated[int, Meta(description="So many times.")]


class Links:
    """Counts clicks of people by link."""

    def __init__(self) -> None:
        self._totals = Counter[str]()
        self._mails: dict[str, set[str]] = defaultdict(set)

    def add(self, row: MailRow, *, machine: bool) -> None:
        """Count a row."""
        if row.type == MAIL_CLICKED and row.link and not machine:
            self._totals[row.link] += row.count
            self._mails[row.link].add(row.message)

    def clicks(self) -> list[LinkClicks]:
        """The links that were clicked in most mails."""
        counted = [
            LinkClicks(link=link, unique=len(self._mails[link]), total=total) for link, total in self._totals.items()
        ]
        return sorted(counted, key=lambda clicks: (-clicks.unique, -clicks.total, clicks.link))[:LINKS_MAX]


class Tally:
    """Counts rows in any order."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, bool], int] = defaultdict(int)
        self._mails: dict[tuple[str, bool], set[str]] = defaultdict(set)
        self._why: dict[tuple[str, str], set[str]] = defaultdict(set)
        """By type of event and kind of bounce, or reason why a mail was skipped, the mails."""
        self._repeats: dict[str, int] = defaultdict(int)

    def add(self, row: MailRow, *, machine: bool) -> None:
        """Count a row."""
        type = f"mail_{row.fetch}" if row.type in FETCHES else row.type
        if row.type == MAIL_FETCHED:
            self._repeats[type] += row.count
            return
        self._totals[type, machine] += row.count
        self._mails[type, machine].add(row.message)
        if why := {MAIL_BOUNCED: row.bounce, MAIL_SKIPPED: row.reason}.get(row.type):
            self._why[row.type, why].add(row.message)

    def counts(self) -> Counts:
        """All counts."""
        named = {type.removeprefix("mail_"): self._count(type) for type in COUNTED}
        return Counts(**named, bounces=self._by_why(MAIL_BOUNCED), skip_reasons=self._by_why(MAIL_SKIPPED))

    def _by_why(self, type: str) -> dict[str, int]:
        return {why: len(mails) for (of, why), mails in sorted(self._why.items()) if of == type}

    def _count(self, type: str) -> Count:
        people, machines = (type, False), (type, True)
        return Count(
            unique=len(self._mails[people]),
            total=self._totals[people],
            machine_unique=len(self._mails[machines]),
            machine_total=self._totals[machines],
            repeats=self._repeats[type],
        )


def count(rows: Iterable[MailRow]) -> tuple[Counts, list[PartCounts], list[LinkClicks]]:
    """All counts, those of each template, step and arm, and clicks by link."""
    whole, links, parts = Tally(), Links(), defaultdict[tuple[str, str, str], Tally](Tally)
    clicks: dict[str, list[MailRow]] = defaultdict(list)
    for row in rows:
        if row.type == MAIL_CLICKED and not row.decided:
            clicks[row.message].append(row)  # of an earlier version: only all of them can tell which a scanner made
        else:
            machine = row.type in _BY_PEOPLE and row.machine
            whole.add(row, machine=machine)
            links.add(row, machine=machine)
            parts[row.template, row.step, row.arm].add(row, machine=machine)
    for of_mail in clicks.values():
        by_scanner = scanned(Click(row.at, row.link) for row in of_mail)
        for row in of_mail:
            machine = row.machine or Click(row.at, row.link) in by_scanner
            whole.add(row, machine=machine)
            links.add(row, machine=machine)
            parts[row.template, row.step, row.arm].add(row, machine=machine)
    shown = [
        PartCounts(template=template, step=step, arm=arm, counts=tally.counts())
        for (template, step, arm), tally in sorted(parts.items())
    ]
    return whole.counts(), shown, links.clicks()
