"""Why somebody did not get a mail: for each reason a shop in which it is so, and the answer says it with when."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import pytest

from tests.capabilities.unsent_stage import DEFINITIONS, World
from threadline import capabilities
from threadline.capabilities.ask.unsent.operations import WhyNotResult
from threadline.capabilities.ask.unsent.reasons import REASONS, SUPPRESSED
from threadline.capabilities.decide.rules.effective import Code
from threadline.capabilities.reach.broadcasts.audience import Resolver
from threadline.capabilities.reach.consent import events as consent_events
from threadline.capabilities.reach.consent.standing import GETS_MAIL, Status
from threadline.capabilities.reach.journeys.reacting import LEFT_EARLY
from threadline.kernel.disclosure import Shown
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.sender import Outcome
from threadline.kernel.time import DAY, HOUR, SECOND, parse_time
from threadline.surfaces.mcp.masking import Masker

Wanted = dict[str, str]
WORLDS: dict[str, Callable[[World], Wanted]] = {}


def world(reason: str) -> Callable[[Callable[[World], Wanted]], Callable[[World], Wanted]]:
    """Declare a function that brings about a reason, and answers what is asked then."""

    def declare(made: Callable[[World], Wanted]) -> Callable[[World], Wanted]:
        WORLDS[reason] = made
        return made

    return declare


# --- the law --------------------------------------------------------------------------------------


def reasons_of_the_engine() -> Iterator[str]:
    """Every word with which the engine holds a mail back: declared types, and the literals of those who decide."""
    yield from set(get_args(Status)) - GETS_MAIL
    yield from (f"{SUPPRESSED}:{reason}" for reason in consent_events.REASONS)
    yield from (f"journey_left:{reason}" for reason in LEFT_EARLY)
    yield from (f"rule:{code}" for code in get_args(Code))
    for path in Path(next(iter(capabilities.__path__))).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield from _literals(node)


def _literals(call: ast.Call) -> Iterator[str]:
    assert isinstance(call.func, ast.Name)
    given: list[ast.AST] = []
    if call.func.id == "Postponed":
        given = [keyword.value for keyword in call.keywords if keyword.arg == "why"]
        assert given, "who postpones a mail says why"
    if call.func.id in ("_skipped", "_outcome") and len(call.args) > 1:
        given = [*call.args[1:]]
    for value in (inner for argument in given for inner in ast.walk(argument)):
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
            yield value.value


def test_each_reason_of_the_engine_has_a_sentence() -> None:
    known = set(reasons_of_the_engine())
    assert {"frequency_cap", "quiet_hours", "no_address", "duplicate", "broadcast_paused", "unconfirmed"} <= known
    assert known <= REASONS.keys()


def test_each_reason_has_a_world_that_meets_it() -> None:
    assert WORLDS.keys() | UNMEETABLE.keys() == REASONS.keys()
    assert not WORLDS.keys() & UNMEETABLE.keys()


UNMEETABLE = {
    "rule:unwritten": "only asked about with a content that is given",
    "rule:draft": "only versions that are active are asked",
    "rule:tested": "only versions that are active are asked",
    "rule:shadow": "only versions that are active are asked",
    "rule:retired": "only versions that are active are asked",
    "rule:replay": "only of decisions that were replayed",
    "rule:event_type": "the last event of a type that the rule runs on is asked about",
}
"""Words of rules that no rule which is asked about a person's last event has."""


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_a_world_with_a_reason_is_answered_with_it_and_when(reason: str) -> None:
    if reason in UNMEETABLE:
        assert reason.startswith("rule:")
        return
    stage = World()
    asked = WORLDS[reason](stage)
    answers = stage.why_not(**asked)["mails"]
    [answer] = [mail for mail in answers if mail["reason"] == reason][:1] or [answers]
    assert answer["reason"] == reason
    assert answer["sentence"].endswith(".")
    if reason not in _TIMELESS:
        assert answer["at"] or answer["until"], answer


_TIMELESS = {
    "by_request",
    "not_triggered",
    "event_awaited",
    "broadcast_draft",
    "broadcast_running",
    "not_requested",
    "queue_stopped",
    "waiting",
    "rule:no_event",
    "rule:no_rule_set",
}
"""Nothing has happened of which somebody could say when."""


# --- skipped --------------------------------------------------------------------------------------


@world("sent")
def _sent(stage: World) -> Wanted:
    return stage.send("receipt")


@world("no_address")
def _no_address(stage: World) -> Wanted:
    stage.tell("identify", user_id="ada", properties={"email": ""})
    return stage.send("receipt")


@world("invalid_address")
def _invalid_address(stage: World) -> Wanted:
    stage.tell("identify", user_id="ada", properties={"email": "not an address"})
    return stage.send("receipt")


@world("unsubscribed")
def _unsubscribed(stage: World) -> Wanted:
    stage.ask("consent_change", id="user_id:ada", unsubscribe=["news"])
    return stage.send("hello")


@world("unconfirmed")
def _unconfirmed(stage: World) -> Wanted:
    stage.ask("consent_change", id="user_id:ada", subscribe=["letter"])
    return stage.send("letter")


@world("opted_out")
def _opted_out(stage: World) -> Wanted:
    return stage.send("club_news")


@world("suppressed:manual")
def _suppressed_by_hand(stage: World) -> Wanted:
    stage.ask("suppression_add", address="ada@example.com")
    return stage.send("receipt")


def _suppressed_for(reason: str) -> Callable[[World], Wanted]:
    def suppressed(stage: World) -> Wanted:
        event = Event(
            type=consent_events.ADDRESS_SUPPRESSED,
            identifiers=(Identifier("user_id", "ada"),),
            occurred_at=stage.now,
            key="suppressed",
            source_type="internal",
            properties={"address": "ada@example.com", "reason": reason},
        )
        [receipt] = stage.engine.recorder.record([event])
        assert receipt.status == "accepted"
        return stage.send("receipt")

    return suppressed


for _reason in ("bounce", "complaint", "import"):
    world(f"suppressed:{_reason}")(_suppressed_for(_reason))
world("suppressed")(_suppressed_for("a reason of theirs"))


@world("frequency_cap")
def _capped(stage: World) -> Wanted:
    stage.send("hello")
    return stage.send("offer")


@world("duplicate")
def _duplicate(stage: World) -> Wanted:
    stage.tell("identify", user_id="bob", properties={"email": "ada@example.com"})
    stage.broadcast()
    stage.work()
    skipped = [
        id
        for id in ("user_id:ada", "user_id:bob")
        if any(mail["reason"] == "duplicate" for mail in stage.ask("mail_history", id=id)["mails"])
    ]
    if skipped == ["user_id:bob"]:  # the first of the two by id got it
        stage.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)
    return {"broadcast": "sale"}


@world("other")
def _other(stage: World) -> Wanted:
    event = Event(
        type="mail_skipped",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=stage.now,
        key="skipped",
        source_type="internal",
        properties={"message": "m1", "template": "hello", "reason": 'written by "somebody"'},
    )
    stage.engine.recorder.record([event])
    return {"template": "hello"}


@world("template_failed")
def _template_failed(stage: World) -> Wanted:
    return stage.send("strict")


@world("given_up")
def _given_up(stage: World) -> Wanted:
    stage.outcome = Outcome(type="threadline.effect_parked", parked="refused for good")
    return stage.send("receipt")


@world("unknown")
def _unknown(stage: World) -> Wanted:
    stage.outcome = Outcome(type="threadline.effect_unknown", properties={"why": "the line broke"})
    return stage.send("receipt")


@world("withdrawn")
def _withdrawn(stage: World) -> Wanted:
    event = Event(
        type="threadline.effect_withdrawn",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=stage.now,
        key="withdrawn",
        source="threadline.dispatch",
        source_type="internal",
        properties={"effect": "e1", "kind": "mail", "why": "no more", "data": {"template": "hello"}},
    )
    stage.engine.recorder.record([event])
    return {"template": "hello"}


# --- in the outbox --------------------------------------------------------------------------------


@world("waiting")
def _waiting(stage: World) -> Wanted:
    stage.ask("mail_send", id="user_id:ada", template="receipt")
    return {"template": "receipt"}


@world("retrying")
def _retrying(stage: World) -> Wanted:
    stage.outcome = Outcome(type="threadline.effect_retried", retry_after_seconds=3_600)
    return stage.send("receipt")


@world("queue_stopped")
def _queue_stopped(stage: World) -> Wanted:
    stage.ask("mail_send", id="user_id:ada", template="receipt")
    stage.engine.delivery.stop("mail", "the provider asked for it")
    return {"template": "receipt"}


@world("quiet_hours")
def _quiet_hours(stage: World) -> Wanted:
    stage.now += 13 * HOUR
    return stage.send("hello")


@world("warm_up")
def _warm_up(stage: World) -> Wanted:
    stage.tell("identify", user_id="bob", properties={"email": "bob@example.com"})
    stage.ask("mail_send", id="user_id:bob", template="young")
    stage.work()
    return stage.send("young")


@world("journey_paused")
def _journey_paused(stage: World) -> Wanted:
    stage.tell("signed_up", user_id="ada", properties={"channel": "web"})
    stage.later(HOUR)
    stage.ask("journeys_pause", name="welcome")
    return {"journey": "welcome"}


@world("broadcast_paused")
def _broadcast_paused(stage: World) -> Wanted:
    wanted = stage.broadcast(at="2026-01-05T09:00", in_zone_of_recipient=True)
    stage.later(4 * DAY - 4 * HOUR)
    stage.ask("broadcasts_pause", id="sale")
    return wanted


# --- journeys -------------------------------------------------------------------------------------


def _signed_up(stage: World, more: int = HOUR) -> Wanted:
    stage.tell("signed_up", user_id="ada", properties={"channel": "web"})
    stage.later(more)
    return {"journey": "welcome"}


@world("holdout")
def _holdout(stage: World) -> Wanted:
    stage.tell("compared", user_id="ada")
    return {"journey": "quiet"}


world("journey_waits")(_signed_up)
world("event_awaited")(_signed_up)


@world("other_path")
def _other_path(stage: World) -> Wanted:
    return _signed_up(stage, 2 * DAY + HOUR)


@world("journey_left")
def _left_for_a_reason(stage: World) -> Wanted:
    _signed_up(stage)
    stage.ask("journeys_exit", id="user_id:ada", name="welcome", reason="Ada asked for it")
    return {"journey": "welcome"}


@world("journey_left:requested")
def _left_by_request(stage: World) -> Wanted:
    _signed_up(stage)
    stage.ask("journeys_exit", id="user_id:ada", name="welcome")
    return {"journey": "welcome"}


@world("journey_left:exit_on")
def _left_by_event(stage: World) -> Wanted:
    _signed_up(stage)
    stage.tell("gone", user_id="ada")
    return {"journey": "welcome"}


@world("journey_left:timeout")
def _left_by_time(stage: World) -> Wanted:
    _signed_up(stage)
    stage.ask("journeys_pause", name="welcome")
    stage.later(61 * DAY)
    stage.ask("journeys_resume", name="welcome")
    stage.work()
    return {"journey": "welcome"}


def _left_by_feedback(type: str, **properties: Any) -> Callable[[World], Wanted]:
    def left(stage: World) -> Wanted:
        _signed_up(stage)
        event = Event(
            type=type,
            identifiers=(Identifier("user_id", "ada"),),
            occurred_at=stage.now,
            key="feedback",
            source_type="internal",
            properties={"message": "m1", **properties},
        )
        stage.engine.recorder.record([event])
        return {"journey": "welcome"}

    return left


world("journey_left:bounced")(_left_by_feedback("mail_bounced", bounce="permanent"))
world("journey_left:complained")(_left_by_feedback("mail_complained", feedback="abuse"))


def _left_as_recorded(reason: str) -> Callable[[World], Wanted]:
    """The last event of a run as the engine writes it: for reasons that need a merge of two runs or other definitions,
    which tests of journeys bring about."""

    def left(stage: World) -> Wanted:
        _signed_up(stage)
        person = stage.engine.reader.person("default", "user_id:ada")
        [*_, last] = stage.engine.reader.events(person, types=frozenset({"journey_entered", "journey_moved"}))
        properties = {**last.event.properties, "n": 99, "reason": reason, "interrupted": True}
        event = Event(
            type="journey_exited",
            identifiers=(Identifier("user_id", "ada"),),
            occurred_at=stage.now,
            key="left",
            source_type="internal",
            properties=properties,
        )
        stage.engine.recorder.record([event])
        return {"journey": "welcome"}

    return left


for _reason in ("merged", "removed", "step_removed"):
    world(f"journey_left:{_reason}")(_left_as_recorded(_reason))


@world("by_request")
def _by_request(stage: World) -> Wanted:
    return {"journey": "by_hand"}


@world("not_triggered")
def _not_triggered(stage: World) -> Wanted:
    return {"journey": "for_vips"}


@world("trigger_unmet")
def _trigger_unmet(stage: World) -> Wanted:
    stage.tell("signed_up", user_id="ada", properties={"channel": "phone"})
    return {"journey": "welcome"}


@world("trigger_not_news")
def _trigger_not_news(stage: World) -> Wanted:
    stage.tell("signed_up", user_id="ada", at=stage.now - DAY, historical=True, properties={"channel": "web"})
    return {"journey": "welcome"}


@world("trigger_late")
def _trigger_late(stage: World) -> Wanted:
    stage.tell("signed_up", user_id="ada", at=stage.now - 2 * DAY, properties={"channel": "web"})
    return {"journey": "welcome"}


@world("trigger_before")
def _trigger_before(stage: World) -> Wanted:
    stage.ask("journeys_pause", name="welcome")
    stage.tell("signed_up", user_id="ada", properties={"channel": "web"})
    stage.ask("journeys_resume", name="welcome")
    return {"journey": "welcome"}


@world("entered_before")
def _entered_before(stage: World) -> Wanted:
    _left_by_request(stage)
    return _signed_up(stage)


# --- broadcasts -----------------------------------------------------------------------------------


@world("broadcast_draft")
def _broadcast_draft(stage: World) -> Wanted:
    return stage.broadcast(start=False)


@world("broadcast_scheduled")
def _broadcast_scheduled(stage: World) -> Wanted:
    return stage.broadcast(at="2026-02-01T09:00")


@world("broadcast_running")
def _broadcast_running(stage: World) -> Wanted:
    wanted = stage.broadcast()
    stage.works_until(lambda: stage.ask("broadcasts_show", id="sale")["state"] == "sending")
    return wanted


@world("broadcast_cancelled")
def _broadcast_cancelled(stage: World) -> Wanted:
    wanted = stage.broadcast(at="2026-01-05T09:00", in_zone_of_recipient=True)
    stage.later(4 * DAY - 4 * HOUR)
    stage.ask("broadcasts_cancel", id="sale")
    stage.later(DAY)
    return wanted


@world("broadcast_failed")
def _broadcast_failed(stage: World) -> Wanted:
    wanted = stage.broadcast()
    with patch.object(Resolver, "page", side_effect=RuntimeError("the index is gone")):
        while stage.ask("broadcasts_show", id="sale")["state"] != "failed":
            stage.later(HOUR)
    return wanted


@world("winner_awaited")
def _winner_awaited(stage: World) -> Wanted:
    arms = [{"name": "a"}, {"name": "b", "subject": "B"}]
    wanted = stage.broadcast(arms=arms, winner={"share": 0.000001, "after": "1d", "metric": "clicks"})
    stage.work()
    return wanted


@world("not_in_audience")
def _not_in_audience(stage: World) -> Wanted:
    wanted = stage.broadcast(audience={"segment": "vips"})
    stage.work()
    return wanted


# --- rules, and nothing ---------------------------------------------------------------------------


@world("rule:no_match")
def _no_match(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 1})
    return {"rule": "big"}


@world("rule:no_event")
def _no_event(stage: World) -> Wanted:
    return {"rule": "big"}


@world("rule:historical")
def _historical(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", at=stage.now - DAY, historical=True, properties={"total": 200})
    return {"rule": "big"}


@world("rule:not_effective")
def _not_effective(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 200})
    return {"rule": "expired"}


@world("rule:no_rule_set")
def _no_rule_set(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 200})
    return {"rule": "lonely"}


@world("rule:undecided")
def _undecided(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 200})
    stage.tell("identify", user_id="ada", properties={"plan": "vip"})
    return {"rule": "later"}


@world("rule:first_match")
def _first_match(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 200})
    return {"rule": "second"}


@world("rule:error")
def _error(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 200})
    return {"rule": "broken"}


@world("rule:before_rule")
def _before_rule(stage: World) -> Wanted:
    stage.tell("bought", user_id="ada", properties={"total": 200})
    version = stage.ask("rules_write", id="new", rule=_NEW)["version"]
    stage.ask("rules_activate", id="new", version=version, untested=True)
    stage.ask("rule_sets_write", name="new", events=["bought"], rules=["new"])
    return {"rule": "new"}


_NEW = {
    "conditions": {"field": "event.properties.total", "greater_than": 100},
    "actions": [{"send_notification": {"template": "by_rule"}}],
}


@world("not_requested")
def _not_requested(stage: World) -> Wanted:
    return {"template": "nobody_sends"}


# --- single answers -------------------------------------------------------------------------------


def _only(stage: World, **asked: str) -> dict[str, Any]:
    [mail] = stage.why_not(**asked)["mails"]
    answer: dict[str, Any] = mail
    return answer


def test_a_waiting_mail_answers_what_happens_to_it_when_it_is_due() -> None:
    """The answer is the engine's own: time is let pass, and what was said of the mail has come."""
    stage = World()
    stage.now += 13 * HOUR
    stage.send("offer")
    answer = _only(stage, template="offer")
    assert answer["sentence"] == ("Waits until 2026-01-02 08:00 UTC: it is night for the person, by the quiet hours.")
    stage.ask("consent_change", id="user_id:ada", unsubscribe=["news"])
    assert _only(stage, template="offer")["sentence"].endswith(
        "until 2026-01-02 08:00 UTC, and would then not be sent: the person unsubscribed."
    )
    stage.later(DAY)
    after = _only(stage, template="offer")
    assert (after["reason"], after["message"]) == ("unsubscribed", answer["message"])
    assert after["sentence"] == "Not sent on 2026-01-02 08:00 UTC: the person unsubscribed."


@pytest.mark.parametrize("reason", ["quiet_hours", "frequency_cap"])
def test_a_mail_that_waits_leaves_at_the_instant_that_is_answered(reason: str) -> None:
    stage = World()
    asked = WORLDS[reason](stage)
    answer = next(mail for mail in stage.why_not(**asked)["mails"] if mail["reason"] == reason)
    until = parse_time(answer["until"])

    def is_sent() -> bool:
        sent = [mail for mail in stage.why_not(**asked)["mails"] if mail["message"] == answer["message"]]
        return {mail["reason"] for mail in sent} == {"sent"}

    stage.until(until - SECOND)
    assert not is_sent()
    stage.until(until + SECOND)
    assert is_sent()


def test_asking_why_not_writes_nothing() -> None:
    stage = World()
    stage.now += 13 * HOUR
    stage.send("hello")
    before = stage.engine.log.feed_end()
    waiting = [pending.item for pending in stage.engine.delivery.waiting(stage.ada().heads)]
    stage.why_not()
    assert stage.engine.log.feed_end() == before
    assert [pending.item for pending in stage.engine.delivery.waiting(stage.ada().heads)] == waiting


def test_what_somebody_wrote_stands_in_quotation_marks_and_not_in_the_reason() -> None:
    stage = World()
    _left_for_a_reason(stage)
    answers = [mail for mail in stage.why_not(journey="welcome")["mails"] if mail["reason"] != "sent"]
    assert {mail["reason"] for mail in answers} == {"journey_left"}
    assert all('("Ada asked for it")' in mail["sentence"] for mail in answers)


@pytest.mark.parametrize(
    ("made", "secret"), [(_left_for_a_reason, "Ada asked"), (_given_up, "refused for good"), (_sent, "ada@example.com")]
)
def test_an_agent_without_personal_data_sees_the_reasons_and_nothing_that_somebody_wrote(
    made: Callable[[World], Wanted], secret: str
) -> None:
    stage = World()
    asked = made(stage)
    catalogue = stage.engine.catalogue
    masker = Masker(Shown(catalogue.shown_properties, {}), catalogue.rules)
    answer = stage.why_not(**asked)
    shown = masker.masked(answer, WhyNotResult, {"id": "user_id:ada", **asked})
    assert [mail["reason"] for mail in shown["mails"]] == [mail["reason"] for mail in answer["mails"]]
    assert secret in str(answer)
    assert secret not in str(shown)


def test_a_mail_that_was_sent_is_answered_only_where_it_is_named() -> None:
    stage = World()
    stage.send("receipt")
    assert "sent" not in {mail["reason"] for mail in stage.why_not()["mails"]}
    answer = next(mail for mail in stage.why_not(template="receipt")["mails"] if mail["reason"] == "sent")
    assert answer["sentence"] == "Sent on 2026-01-01 10:00 UTC."


def test_the_condition_that_failed_is_said_of_a_trigger_an_audience_and_a_rule() -> None:
    stage = World()
    stage.tell("signed_up", user_id="ada", properties={"channel": "phone"})
    [first, *_] = stage.why_not(journey="welcome")["mails"]
    assert first["sentence"].endswith(
        "(signed up) came, and not as the journey wants it. Not met: channel of the event is web."
    )
    assert first["conditions"][0]["actual"] == "phone"
    assert _only(stage, **_not_in_audience(stage))["conditions"][0]["field"] == "traits.plan"
    assert _only(stage, **_no_match(stage))["conditions"][0]["actual"] == 1


def test_a_step_that_a_run_has_passed_on_another_path_is_told_from_one_that_is_still_ahead() -> None:
    stage = World()
    _signed_up(stage, 2 * DAY + HOUR)
    reasons = {mail["step"]: mail["reason"] for mail in stage.why_not(journey="welcome")["mails"]}
    assert reasons == {
        "first": "sent",
        "vip": "other_path",
        "other": "sent",
        "night": "journey_waits",
        "thanks": "event_awaited",
    }


def test_of_two_people_in_one_journey_who_were_merged_the_run_that_goes_on_is_answered() -> None:
    stage = World()
    _signed_up(stage)
    stage.tell("identify", user_id="bob", properties={"email": "bob@example.com"})
    stage.tell("signed_up", user_id="bob", properties={"channel": "web"})
    stage.later(HOUR)
    stage.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)
    stage.later(HOUR)
    reasons = [mail["reason"] for mail in stage.why_not(journey="welcome")["mails"]]
    assert sorted(reasons) == ["event_awaited", "journey_waits", "journey_waits", "journey_waits", "sent", "sent"]


def test_a_step_whose_name_begins_like_that_of_a_step_that_has_sent_is_answered_too() -> None:
    calls = """journeys:
  calls:
    trigger: {event: rang}
    steps:
      - wait: {event: called, timeout: 1d}
        then: [{id: one, send: receipt}]
        else: [{id: one-more, send: receipt}]
"""
    stage = World(DEFINITIONS.replace("journeys:\n", calls, 1))
    stage.tell("rang", user_id="ada")
    stage.later(2 * DAY)
    answers = {mail["step"]: mail["reason"] for mail in stage.why_not(journey="calls")["mails"]}
    assert answers == {"one": "other_path", "one-more": "sent"}


def test_a_mail_of_a_broadcast_that_went_before_two_people_were_merged_is_found() -> None:
    stage = World()
    stage.tell("identify", user_id="bob", properties={"email": "bob@example.com"})
    stage.broadcast()
    stage.work()
    stage.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)
    assert {mail["reason"] for mail in stage.why_not(broadcast="sale")["mails"]} == {"sent"}


def test_what_would_become_of_a_mail_that_is_asked_for_now_is_answered_beside_the_mails() -> None:
    stage = World()
    assert stage.why_not(template="hello")["now"] is None
    assert stage.why_not(template="club_news")["now"]["reason"] == "opted_out"
    assert stage.why_not(template="strict")["now"]["reason"] == "template_failed"
    stage.send("offer")
    capped = stage.why_not(template="hello")["now"]
    assert (capped["reason"], capped["until"][:10], capped["message"]) == ("frequency_cap", "2026-01-06", "")
    assert stage.why_not(template="receipt")["now"] is None, "caps are for marketing"
    stage.ask("suppression_add", address="ada@example.com")
    assert stage.why_not()["now"]["sentence"] == "Not sent: the address is suppressed: somebody here did it."
    assert stage.why_not(template="receipt")["now"]["reason"] == "suppressed:manual"
    assert len(stage.mails) == 1


def test_more_than_one_of_template_and_journey_is_refused() -> None:
    with pytest.raises(InvalidValue, match="at most one"):
        World().why_not(template="hello", journey="welcome")


def test_a_mail_that_cannot_be_made_yet_answers_what_an_operator_has_to_put_right() -> None:
    stage = World()
    stage.engine.public_address.use_local("")
    stage.send("offer")
    assert "public_url" in _only(stage, template="offer")["sentence"]
