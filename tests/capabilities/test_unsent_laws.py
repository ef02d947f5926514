"""Law: whatever the outbox and the log have of a person's mails is in the answer, with the reason of the log; and no
mail that was sent is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.unsent_stage import World
from threadline.capabilities.ask.unsent.reasons import OTHER, REASONS
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.sender import Outcome
from threadline.kernel.time import DAY, HOUR, MINUTE

TEMPLATES = ("hello", "offer", "receipt", "strict", "club_news", "letter", "young")
WHO = st.sampled_from(["user_id:ada", "user_id:bob"])
OUTCOMES = {
    "sent": None,
    "parked": Outcome(type="threadline.effect_parked", parked="refused for good"),
    "retried": Outcome(type="threadline.effect_retried", retry_after_seconds=60),
}
BROADCASTS: tuple[dict[str, Any], ...] = (
    {},
    {"audience": {"segment": "vips"}},
    {"audience": {"tags": ["none"]}},
    {"at": "2026-01-09T09:00", "in_zone_of_recipient": True},
    {"holdout": 0.5},
    {"arms": [{"name": "a"}, {"name": "b"}], "winner": {"share": 0.5, "after": "1d"}},
)
ASKED: tuple[dict[str, Any], ...] = (
    {"op": "consent_change", "unsubscribe": ["news"]},
    {"op": "consent_change", "subscribe": ["news"]},
    {"op": "consent_change", "subscribe": ["letter"]},
    {"op": "consent_change", "everything": True},
    {"op": "journeys_exit", "name": "welcome"},
    {"op": "journeys_exit", "name": "welcome", "reason": 'they said "no"'},
    {"op": "journeys_enter", "name": "by_hand"},
    *({"op": "mail_send", "template": template} for template in TEMPLATES),
)
TOLD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("signed_up", {"channel": "web"}),
    ("signed_up", {"channel": "phone"}),
    ("compared", {}),
    ("thanked", {}),
    ("gone", {}),
    ("bought", {"total": 200}),
    ("identify", {"plan": "vip", "timezone": "Asia/Tokyo"}),
    ("identify", {"plan": "free", "timezone": "UTC"}),
)
STEP = st.one_of(
    st.tuples(st.just("ask"), WHO, st.sampled_from(ASKED)),
    st.tuples(st.just("tell"), WHO, st.sampled_from(TOLD)),
    st.tuples(st.just("later"), st.sampled_from([MINUTE, HOUR, 9 * HOUR, DAY, 3 * DAY])),
    st.tuples(st.just("broadcast"), st.sampled_from(BROADCASTS)),
    st.tuples(st.just("steer"), st.sampled_from(["broadcasts_pause", "broadcasts_resume", "broadcasts_cancel"])),
    st.tuples(st.just("journey"), st.sampled_from(["journeys_pause", "journeys_resume"])),
    st.tuples(st.just("provider"), st.sampled_from(sorted(OUTCOMES))),
    st.tuples(st.just("suppress"), st.sampled_from(["suppression_add", "suppression_lift"])),
    st.tuples(st.just("merge")),
)


def _do(stage: World, step: tuple[Any, ...], started: list[str]) -> None:
    what, *given = step
    if what == "ask":
        operation = {name: value for name, value in given[1].items() if name != "op"}
        stage.ask(given[1]["op"], id=given[0], **operation)
    elif what == "tell":
        stage.tell(given[1][0], user_id=given[0].removeprefix("user_id:"), properties=given[1][1])
    elif what == "later":
        stage.later(given[0])
    elif what == "broadcast":
        started.append(f"b{len(started)}")
        stage.ask("broadcasts_create", id=started[-1], template="receipt", **given[0])
        stage.ask("broadcasts_start", id=started[-1])
    elif what == "steer" and started:
        stage.ask(given[0], id=started[-1])
    elif what == "journey":
        stage.ask(given[0], name="welcome")
    elif what == "provider":
        stage.outcome = OUTCOMES[given[0]]
    elif what == "suppress":
        stage.ask(given[0], address="ada@example.com")
    elif what == "merge":
        stage.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)


@given(steps=st.lists(STEP, min_size=5, max_size=25))
@settings(max_examples=15, deadline=None)
def test_what_the_outbox_and_the_log_have_of_a_persons_mails_is_answered_with_its_reason(
    steps: list[tuple[Any, ...]],
) -> None:
    stage = World()
    stage.tell("identify", user_id="bob", properties={"email": "bob@example.com"})
    started: list[str] = []
    for step in steps:
        with suppress(ThreadlineError):
            _do(stage, step, started)
    answers = stage.why_not()["mails"]
    reasons = {mail["message"]: mail["reason"] for mail in answers if mail["message"]}
    assert len(reasons) == sum(bool(mail["message"]) for mail in answers), "no mail is answered twice"
    person = stage.ada()
    waiting = {pending.id for pending in stage.engine.delivery.waiting(person.heads)}
    assert waiting <= reasons.keys()
    types = frozenset({"mail_sent", "mail_skipped"})
    for recorded in stage.engine.reader.all_events(person, types=types):
        message = recorded.event.properties["message"]
        expected = recorded.event.properties.get("reason") if recorded.event.type == "mail_skipped" else None
        assert message in waiting or reasons.get(message) == expected
    named = [{"journey": "welcome"}, {"template": "hello"}, {"rule": "big"}, *({"broadcast": id} for id in started)]
    every = [*answers, *(mail for asked in named for mail in stage.why_not(**asked)["mails"])]
    assert {mail["reason"] for mail in every} <= REASONS.keys() - {OTHER}
    assert all(mail["sentence"].endswith(".") for mail in every)
