"""Laws of every channel that is found: one message for an occurrence, none twice, none lost, in order, with consent."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.laws.channels_stage import STAGES, STARTS_AT, ChannelStage, channels
from threadline.kernel.sender import EFFECT_RETRIED, EFFECT_UNKNOWN
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND

CHANNELS = sorted(channels())
PEOPLE = 4


def test_every_channel_that_is_declared_stands_on_the_stage() -> None:
    assert set(CHANNELS) == set(STAGES)
    assert "mail" in CHANNELS


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_channel_is_its_queue_that_claims_its_ledger_and_its_preparation(channel: str) -> None:
    stage = ChannelStage(channel)
    catalogue, entries = stage.engine.catalogue, stage.entries
    assert catalogue.queues[channel].claims
    assert channel in catalogue.preparations
    assert {entries.sent, entries.skipped} <= {type for type, _ in entries.statuses}
    assert len({status for _, status in entries.statuses}) == len(entries.statuses)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("number", range(6))
def test_a_message_leaves_once_for_an_occurrence_and_each_request_has_one_end(
    channel: str, number: int, seed: int
) -> None:
    random = Random(seed * 10 + number)
    stage = ChannelStage(channel)
    # The last one has the address of the first.
    people = [stage.person(who, 0 if who == PEOPLE - 1 else None) for who in range(PEOPLE)]
    asked: Counter[str] = Counter()
    lost = 0
    for _ in range(40):
        stage.now += random.randrange(1, 90) * SECOND
        if random.random() < 0.7:
            who = random.choice(people)
            asked[who] += 1
            stage.wish(who, f"order {random.randrange(5)}")
        if random.random() < 0.5:
            stage.sink.answer = random.choice(["sent", "sent", "refused", "lost"])
            before = len(stage.sink.left)
            stage.work()
            lost += len(stage.sink.left) - before if stage.sink.answer == "lost" else 0
    stage.sink.answer = "sent"
    for _ in range(50):
        stage.now += HOUR
        stage.work()
    left = Counter((message["occurrence"], message["address"].casefold()) for message in stage.sink.left)
    assert set(left.values()) == {1}
    ends: Counter[str] = Counter()
    for who in people:
        outcomes = [recorded.event for recorded in stage.outcomes(who) if recorded.event.type != EFFECT_RETRIED]
        assert len({event.properties["message"] for event in outcomes}) == len(outcomes) == asked[who]
        skipped = [event.properties["reason"] for event in outcomes if event.type == stage.entries.skipped]
        assert set(skipped) <= {"duplicate"}
        ends.update(event.type for event in outcomes)
    assert ends[EFFECT_UNKNOWN] == lost
    assert ends[stage.entries.sent] + lost == len(stage.sink.left)
    assert ends[stage.entries.skipped] == sum(asked.values()) - len(stage.sink.left)


@pytest.mark.parametrize("channel", CHANNELS)
def test_messages_that_waited_for_the_same_morning_leave_in_the_order_of_their_requests(
    channel: str, seed: int
) -> None:
    random = Random(seed)
    stage = ChannelStage(channel, "  quiet_hours: {from: '11:00', to: '08:00'}\n")
    people = [stage.person(who) for who in range(PEOPLE)]
    asked: dict[str, list[str]] = {who: [] for who in people}
    stage.now += 2 * HOUR
    for number in range(24):
        who = random.choice(people)
        asked[who].append(f"{who}/{number}")
        stage.wish(who, f"{who}/{number}", "note")
        stage.now += random.randrange(3) * MINUTE
        if random.random() < 0.3:
            stage.work()
    assert stage.sink.left == []
    stage.now = STARTS_AT + 22 * HOUR
    stage.work()
    for who in people:
        got = [message["occurrence"] for message in stage.sink.left if message["occurrence"].startswith(f"{who}/")]
        assert got == asked[who]


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_message_of_which_nobody_knows_is_never_sent_again_and_counts_for_caps(channel: str) -> None:
    stage = ChannelStage(channel, f"  caps: [{{{STAGES[channel].cap}: 1, per: 1d}}]\n")
    who = stage.person(0)
    stage.sink.answer = "lost"
    stage.wish(who, "first", "note")
    stage.work()
    stage.sink.answer = "sent"
    stage.wish(who, "second", "note")
    stage.now += 12 * HOUR
    stage.work()
    assert (stage.sink.calls, stage.statuses(who)) == (1, ["unknown"])
    [unknown] = stage.engine.delivery.unknown("default")
    stage.now += 1
    assert stage.engine.delivery.resolve("default", unknown.pending.id, None, "a receipt")
    assert not stage.engine.delivery.resolve("default", unknown.pending.id, None, "a receipt")
    assert stage.statuses(who) == ["sent"]
    stage.now += DAY
    stage.work()
    assert [message["occurrence"] for message in stage.sink.left] == ["first", "second"]


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_suppressed_address_gets_nothing_not_even_what_its_owner_asked_for(channel: str) -> None:
    stage = ChannelStage(channel)
    who = stage.person(0)
    said = {"address": stage.staged.address(0), "reason": "manual", **stage.staged.consent}
    stage.record("address_suppressed", who, "direct", **said)
    stage.wish(who)
    stage.work()
    stage.now += 1
    stage.record("address_unsuppressed", who, "direct", **said)
    stage.wish(who)
    stage.work()
    reasons = [recorded.event.properties.get("reason", "") for recorded in stage.outcomes(who)]
    assert (reasons, stage.sink.calls) == (["suppressed:manual", ""], 1)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("address", [None, "nowhere at all"])
def test_without_an_address_nothing_is_called(channel: str, address: str | None) -> None:
    stage = ChannelStage(channel)
    stage.record("identify", "p0", **{stage.staged.trait: address})
    stage.wish("p0")
    stage.work()
    [outcome] = stage.outcomes("p0")
    assert outcome.event.type == stage.entries.skipped
    assert outcome.event.properties["reason"] == ("no_address" if address is None else "invalid_address")
    assert stage.sink.calls == 0
