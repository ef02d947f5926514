"""How much of a channel anybody gets, and when: caps, and hours of the recipient's day in which nothing is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec

from threadline.capabilities.foundation.definitions.declaring import Problems, text
from threadline.kernel.calendar import quiet_until, zone_of_person
from threadline.kernel.person_view import PersonView
from threadline.kernel.time import MINUTE

TIME_OF_DAY = r"([01]\d|2[0-3]):[0-5]\d"
_TIME = text("a time of day in quotes, such as '21:00'", TIME_OF_DAY).then(
    lambda written: (int(written[:2]) * 60 + int(written[3:])) * MINUTE
)


class QuietHours(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "from", "stop": "to"}):
    """Hours of the recipient's day in which no marketing mail is sent; it goes out afterwards."""

    start: Annotated[int, _TIME]
    stop: Annotated[int, _TIME]

    def until(self, zone: str, at: int) -> int | None:
        """The end of those that an instant lies in, by the clock on the recipient's wall; None: it lies in none."""
        return quiet_until(self.start, self.stop, zone, at)

    def problems(self, written: Collection[str]) -> Problems:
        """Hours that never end."""
        if self.start == self.stop:
            yield "to", "`from` and `to` are the same time, so no mail would ever be sent"


class Most(NamedTuple):
    """At most so many messages in a time."""

    messages: int
    per: int
    """Microseconds."""


class Limits(NamedTuple):
    """What holds up the messages of a channel that nobody has asked for by what they did."""

    caps: tuple[Most, ...] = ()
    quiet_hours: QuietHours | None = None
    timezone: str = "UTC"
    """The zone of people of whom none is known."""
    give_up_seconds: float = 0.0
    """How long after it was first due a message may still go."""

    def quiet_until(self, view: PersonView) -> int | None:
        """The end of the quiet hours that a person is in; None: they are in none."""
        if self.quiet_hours is None:
            return None
        return self.quiet_hours.until(zone_of_person(view.view("profile"), self.timezone), view.at)


def capped_until(caps: Iterable[Most], sent: Sequence[int], at: int) -> int | None:
    """When all caps allow another message, if one forbids it now; ``sent``: the instants of messages, in any order."""
    ordered = sorted(sent, reverse=True)
    ends = [ordered[cap.messages - 1] + cap.per for cap in caps if len(ordered) >= cap.messages]
    latest = max(ends, default=at)
    return latest if latest > at else None
