"""When a marketing mail may go: frequency caps, and the first days of a new domain; `QuietHours` has those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from threadline.capabilities.reach.mail.definition import Cap, Sender
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.ports import IndexRows
from threadline.kernel.store import beyond
from threadline.kernel.time import DAY

WARM_UP = "mail_warm_up"
"""Table of the mails that a new domain has sent on a day."""
_DAYS_COUNTED = 100


def capped_until(caps: Iterable[Cap], sent: Sequence[int], at: int) -> int | None:
    """When all caps allow another mail, if one forbids it now; ``sent``: the instants of mails, in any order."""
    ordered = sorted(sent, reverse=True)
    ends = [ordered[cap.mails - 1] + cap.per for cap in caps if len(ordered) >= cap.mails]
    latest = max(ends, default=at)
    return latest if latest > at else None


def warm_up_partition(workspace: str, domain: str, day: int) -> str:
    """The partition of the mails of a domain on a day, counted from 1970-01-01 in UTC."""
    return f"{workspace}/{domain}/{day}"


class WarmUpCounts:
    """Mails of new domains by day. Rows are read once: a day only grows, and each count is replaced as a whole."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, str]] = {}

    def until(self, rows: IndexRows, workspace: str, sender: Sender, at: int) -> int | None:
        """The next day, if the domain of a sender has sent what it may today; None: it may send."""
        most = sender.warm_up.most(at) if sender.warm_up is not None else None
        if most is None:
            return None
        day = at // DAY
        partition = warm_up_partition(workspace, sender.id_domain, day)
        count, last = self._counts.get(partition, (0, ""))
        while page := rows.read(WARM_UP, partition, last, None, PAGE_ITEMS_MAX):
            count, last = count + len(page), beyond(page[-1].sort)
        if len(self._counts) >= _DAYS_COUNTED:
            self._counts.clear()
        self._counts[partition] = (count, last)
        return (day + 1) * DAY if count >= most else None
