"""Drawn days of a shop: whatever is asked for and however senders fail, nobody gets too much, at night, or twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.capabilities.mail_stage import SHOP, MailStage
from threadline.kernel.sender import EFFECT_RETRIED, Outcome
from threadline.kernel.time import DAY, HOUR, MINUTE

SECTION = """  timezone: Europe/Berlin
  quiet_hours: {from: "22:00", to: "07:00"}
  caps: [{mails: 1, per: 3h}, {mails: 3, per: 1d}]
  give_up_after: 30d
"""
PEOPLE = {"ada": "Europe/Berlin", "bob": "Asia/Kolkata", "eve": "America/St_Johns"}
CAPS = ((1, 3 * HOUR), (3, DAY))

asked = st.tuples(st.sampled_from(sorted(PEOPLE)), st.integers(0, 6), st.sampled_from([False, False, False, True]))
moods = st.sampled_from(["well", "well", "lost", "retry"])
rounds = st.lists(
    st.tuples(moods, st.lists(asked, min_size=2, max_size=6), st.integers(1, 400)), min_size=3, max_size=8
)
"""What senders do, what is asked for then, and how many minutes pass afterwards."""


def hour_of(zone: str, at: int) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(ZoneInfo(zone)).hour


# Without shrinking: an example is a life of twelve days, and a failing one says enough.
@settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(rounds=rounds)
def test_nobody_gets_too_much_or_at_night_or_twice(rounds: list[Any]) -> None:
    stage = MailStage(SHOP + SECTION)
    for who, zone in PEOPLE.items():
        stage.person(who, timezone=zone)
    order = stage.record("purchase_completed", order="1").id
    handed: list[tuple[int, str, str, bool]] = []
    """When, which message, to whom, and whether the sender may have delivered it."""
    mood = "well"

    def answer(data: dict[str, Any]) -> Outcome:
        handed.append((stage.now, data["record"]["message"], data["to"].partition("@")[0], mood != "retry"))
        if mood == "lost":
            raise ConnectionError("nobody knows")
        if mood == "retry":
            return Outcome(type=EFFECT_RETRIED, retry_after_seconds=60.0)
        return Outcome(type="mail_sent", properties=data["record"])

    stage.box.answer = answer
    marketing: dict[str, str] = {}
    for chosen, wanted, minutes in rounds:
        mood = chosen
        for who, number, transactional in wanted:
            params = {"template": "receipt", "event": order} if transactional else {"template": "welcome"}
            made = stage.ask("mail_send", id=who, request=f"{number}/{transactional}", **params)
            if not transactional:
                marketing[made.message] = who
        stage.work()
        stage.now += minutes * MINUTE
        stage.work()
    mood = "well"
    for _ in range(24 * 12):
        stage.now += HOUR
        stage.work()

    gone = Counter(message for _, message, _, delivered in handed if delivered)
    assert set(gone.values()) <= {1}
    # Each was sent, or nobody knows of it: nothing is forgotten.
    assert set(marketing) <= set(gone)
    for who, zone in PEOPLE.items():
        times = sorted(at for at, message, to, delivered in handed if to == who and delivered and message in marketing)
        assert all(7 <= hour_of(zone, at) < 22 for at in times)
        for mails, per in CAPS:
            assert all(later - first >= per for first, later in zip(times, times[mails:], strict=False))
