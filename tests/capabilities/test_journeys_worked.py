"""Journeys worked by hand: what each step does, and when."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import STARTS_AT
from tests.capabilities.journeys_stage import Stage
from threadline.kernel.event import Event
from threadline.kernel.identity import MERGED
from threadline.kernel.time import DAY, HOUR

WELCOME = """
journeys:
  welcome:
    trigger: {event: signed_up, map: {plan: event.properties.plan}}
    exit_on: {event: closed_account}
    steps:
      - send: hello
      - wait: 2d
      - id: bought
        wait: {event: purchase_completed, timeout: 3d}
        then:
          - send: thanks
        else:
          - choice:
              - when: {field: journey.variables.plan, equals: pro}
                steps: [{send: call_us}]
            else:
              - send: reminder
      - id: end
        send: goodbye
"""


def test_a_journey_sends_waits_and_branches() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada", properties={"plan": "pro"})
    stage.until(STARTS_AT + 10 * DAY)
    assert stage.got() == [
        ("2026-01-01T00:00", "hello"),
        ("2026-01-06T00:00", "call_us"),
        ("2026-01-06T00:00", "goodbye"),
    ]
    assert stage.path() == ["1", "2", "bought", "bought.else.1", "bought.else.1.1.1", "end", "completed"]


def test_a_journey_whose_names_have_hyphens_and_slashes_goes_through_every_step() -> None:
    stage = Stage("""
mail:
  senders: {shop-desk: {from: shop@example.com}}
  templates:
    onboarding/hello-you: {subject: Hello, text: Hello}
    v1.2: {subject: Goodbye, text: Goodbye}
journeys:
  wel-come:
    trigger: {event: signed-up}
    steps:
      - id: first-step
        send: onboarding/hello-you
      - id: day-after
        wait: {event: has/bought, timeout: 1d}
        else: [{id: not-yet, send: v1.2}]
""")
    stage.tell("signed-up", user_id="ada", email="ada@example.com")
    stage.until(STARTS_AT + 2 * DAY)
    assert [template for _, template in stage.got()] == ["onboarding/hello-you", "v1.2"]
    assert stage.path() == ["first-step", "day-after", "not-yet", "completed"]


def test_a_wait_ends_with_its_event() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + 3 * DAY)
    stage.tell("purchase_completed", user_id="ada", properties={"total": 5, "currency": "EUR"})
    stage.until(STARTS_AT + 10 * DAY)
    assert [template for _, template in stage.got()] == ["hello", "goodbye", "thanks"]
    assert stage.got()[1][0] == "2026-01-04T00:00"


def test_an_exit_event_ends_it_and_nothing_more_is_sent() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    stage.tell("closed_account", user_id="ada")
    stage.until(STARTS_AT + 10 * DAY)
    assert [template for _, template in stage.got()] == ["hello"]
    assert stage.path()[-1] == "exit_on"
    assert stage.engine.reader.person("default", "user_id:ada").timers == {}


def test_quiet_hours_hold_a_mail_until_the_morning_of_the_recipient() -> None:
    stage = Stage("""
journeys:
  night:
    trigger: {event: signed_up}
    quiet_hours: {from: "22:00", to: "08:00"}
    steps: [{send: hello}]
""")
    stage.tell("identify", user_id="ada", properties={"timezone": "Europe/Rome"})
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    assert stage.got() == [("2026-01-01T07:00", "hello")]


def test_a_recipient_who_moves_while_asleep_is_woken_by_the_new_zone() -> None:
    definitions = """
journeys:
  morning:
    trigger: {event: signed_up}
    steps: [{wait: {until: "09:00"}}, {send: hello}]
"""
    for zone, expected in (("Asia/Tokyo", "2026-01-02T00:00"), ("America/New_York", "2026-01-01T14:00")):
        stage = Stage(definitions)
        stage.tell("identify", user_id="ada", properties={"timezone": "Europe/Rome"})
        stage.now = STARTS_AT + HOUR
        stage.tell("signed_up", user_id="ada")
        stage.until(STARTS_AT + 2 * HOUR)
        stage.tell("identify", user_id="ada", properties={"timezone": zone})
        stage.until(STARTS_AT + 2 * DAY)
        assert stage.got() == [(expected, "hello")]


# --- asked and acted on -----------------------------------------------------------------------


def test_people_of_a_step_their_counts_and_one_way_step_by_step() -> None:
    stage = Stage(WELCOME)
    for who in ("ada", "bob", "cy"):
        stage.tell("signed_up", user_id=who, properties={"plan": "pro"})
        stage.until(stage.now + DAY)
    shown = stage.ask("journeys_show", name="welcome")
    [listed] = [each for each in stage.ask("journeys_list")["journeys"] if each["name"] == "welcome"]
    assert listed["people"] == 3
    assert shown["people"] == 3
    assert {each["step"]: each["people"] for each in shown["steps"] if each["people"]} == {"2": 1, "bought": 2}
    assert "├ 2  wait 2 days  (1 person)" in shown["drawing"]
    assert shown["mermaid"].startswith("flowchart TD")
    people = stage.ask("journeys_people", name="welcome", step="bought")["people"]
    assert sorted(name for each in people for name in each["identifiers"]) == ["user_id:ada", "user_id:bob"]
    pages = stage.ask("journeys_people", name="welcome", limit=2)
    rest = stage.ask("journeys_people", name="welcome", limit=2, cursor=pages["next"])
    assert len({each["person"] for each in pages["people"] + rest["people"]}) == 3
    assert rest["next"] == ""
    [execution] = stage.ask("journeys_of", id="ada")["executions"]
    assert (execution["step"], execution["variables"]) == ("bought", {"plan": "pro"})
    history = stage.ask("journeys_history", id="ada", name="welcome")
    assert [each["path"] for each in history["history"]] == [["1"], ["2"]]
    assert history["history"][0]["mails"] == [{"step": "1", "template": "hello", "arm": ""}]


def test_an_operator_lets_somebody_enter_once_and_leave() -> None:
    stage = Stage(WELCOME)
    stage.tell("identify", user_id="ada", properties={"name": "Ada"})
    entered = stage.ask("journeys_enter", id="ada", name="welcome", variables={"plan": "pro"})
    assert entered["done"]
    assert not stage.ask("journeys_enter", id="ada", name="welcome")["done"]
    left = stage.ask("journeys_exit", id="ada", name="welcome", reason="asked by phone")
    assert left == {"person": entered["person"], "journey": "welcome", "done": True, "run": entered["run"]}
    assert not stage.ask("journeys_exit", id="ada", name="welcome")["done"]
    assert stage.path() == ["1", "asked by phone"]


def test_a_paused_person_goes_on_where_they_were() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.ask("journeys_pause", name="welcome", person="ada")
    stage.until(STARTS_AT + 4 * DAY)
    assert [step for step in stage.path() if step] == ["1"]
    stage.ask("journeys_resume", name="welcome", person="ada")
    stage.until(STARTS_AT + 4 * DAY + HOUR)
    assert stage.path() == ["1", "2"]


def test_a_paused_journey_lets_nobody_enter_and_wakes_everybody_when_it_is_resumed() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.ask("journeys_pause", name="welcome")
    stage.tell("signed_up", user_id="bob")
    stage.until(STARTS_AT + 4 * DAY)
    assert stage.path() == ["1"]
    assert stage.told("bob") == []
    assert stage.ask("journeys_resume", name="welcome")["woken"] == 1
    stage.until(STARTS_AT + 4 * DAY + HOUR)
    assert stage.path() == ["1", "2"]


def test_an_event_that_comes_during_a_pause_counts_after_it() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + 3 * DAY)
    stage.ask("journeys_pause", name="welcome")
    stage.tell("purchase_completed", user_id="ada", properties={"total": 5, "currency": "EUR"})
    stage.until(STARTS_AT + 9 * DAY)
    assert stage.path() == ["1", "2"]
    stage.ask("journeys_resume", name="welcome")
    stage.until(STARTS_AT + 9 * DAY + HOUR)
    assert stage.path() == ["1", "2", "bought", "bought.then.1", "end", "completed"]


# --- versions ---------------------------------------------------------------------------------

SECOND = """
journeys:
  welcome:
    version: 2
    on_change: {on_change}
    trigger: {event: signed_up}
    steps:
      - {id: first, send: hello}
      - {id: pause, wait: 5d}
      - send: SECOND
"""


def version(number: int, on_change: str) -> str:
    text = SECOND.replace("{on_change}", on_change).replace("SECOND", ("one", "two")[number - 1])
    return text.replace("version: 2", f"version: {number}")


def test_people_in_flight_keep_their_version() -> None:
    stage = Stage(version(1, "keep"))
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    later = stage.redefined(version(2, "keep"))
    later.tell("signed_up", user_id="bob")
    later.until(STARTS_AT + 10 * DAY)
    assert [template for _, template in later.got()] == ["hello", "one"]
    assert [template for _, template in later.got("bob")] == ["hello", "two"]


def test_people_in_flight_are_moved_where_it_is_declared() -> None:
    stage = Stage(version(1, "keep"))
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    later = stage.redefined(version(2, "move"))
    later.until(STARTS_AT + 10 * DAY)
    assert [template for _, template in later.got()] == ["hello", "two"]
    assert later.told()[-1]["version"] == 2


# --- one person out of two --------------------------------------------------------------------


def test_two_people_in_one_journey_who_are_merged_go_on_once_where_the_first_was() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + 2 * DAY + HOUR)
    stage.tell("signed_up", email="ada@example.com")
    stage.tell("identify", user_id="ada", email="ada@example.com")
    stage.until(STARTS_AT + 20 * DAY)
    assert stage.path().count("completed") == 1
    assert "merged" in stage.path()
    assert [template for _, template in stage.got()].count("reminder") == 1


def test_a_bounce_from_outside_ends_nothing_and_one_of_ours_ends_marketing() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.now += 1
    event = stage.engine.recorder.record
    person = stage.engine.reader.person("default", "user_id:ada")
    for source_type, left in (("external", False), ("internal", True)):
        bounced = Event(
            type="mail_bounced",
            identifiers=(person.identifiers[person.id],),
            occurred_at=stage.now,
            key=source_type,
            source_type=source_type,
            properties={"bounce": "permanent"},
        )
        assert event([bounced])[0].status == "accepted"
        assert (stage.path()[-1] == "bounced") is left


# --- mails that wait --------------------------------------------------------------------------


def test_a_mail_that_waits_is_withdrawn_when_its_journey_is_left() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.tell("closed_account", user_id="ada")
    stage.until(STARTS_AT + DAY)
    assert stage.mails == []
    assert (
        stage.engine.reader.views(stage.engine.reader.person("default", "user_id:ada"), stage.now)["journeys"]["sent"]
        == {}
    )


def test_a_mail_that_waits_is_sent_after_the_pause() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    stage.tell("signed_up", user_id="bob")
    stage.ask("journeys_pause", name="welcome", person="ada")
    stage.until(STARTS_AT + HOUR)
    assert (stage.got(), [template for _, template in stage.got("bob")]) == ([], ["hello"])
    stage.ask("journeys_resume", name="welcome", person="ada")
    stage.until(STARTS_AT + 3 * HOUR)
    assert [template for _, template in stage.got()] == ["hello"]


@pytest.mark.parametrize("others", ["{other: {steps: [{send: hello}]}}", "{}"])
def test_a_journey_that_is_not_declared_any_more_is_left_at_the_next_step(others: str) -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", user_id="ada")
    later = stage.redefined(f"journeys: {others}")
    later.until(STARTS_AT + 9 * DAY)
    assert later.path() == ["1", "removed"]


def test_a_holdout_goes_through_without_a_mail() -> None:
    stage = Stage(WELCOME.replace("  welcome:\n", "  welcome:\n    holdout: 0.5\n"))
    for number in range(40):
        stage.tell("signed_up", user_id=f"u{number}")
    stage.until(STARTS_AT + HOUR)
    holdouts = [n for n in range(40) if stage.told(f"u{n}")[0].get("holdout")]
    assert 8 < len(holdouts) < 32
    assert {n for n in range(40) if stage.got(f"u{n}")} == set(range(40)) - set(holdouts)


def test_a_person_gets_one_variant_and_variants_get_their_weight() -> None:
    stage = Stage("""
journeys:
  tried:
    trigger: {event: signed_up}
    reentry: always
    steps: [{send: {variants: [{template: short}, {template: long, weight: 3}]}}]
""")
    for who in [f"u{number}" for number in range(60)] * 2:
        stage.tell("signed_up", user_id=who)
    stage.until(STARTS_AT + HOUR)
    got = [[template for _, template in stage.got(f"u{number}")] for number in range(60)]
    assert all(len(each) == 2 and each[0] == each[1] for each in got)
    assert 4 <= sum(each[0] == "short" for each in got) <= 26


def test_a_rule_lets_people_enter_and_leave() -> None:
    stage = Stage(
        WELCOME
        + """
rules:
  in: {conditions: {field: event.type, equals: vip_named}, actions: [{EnterJourney: {journey: welcome}}]}
  out: {conditions: {field: event.type, equals: vip_gone}, actions: [{exit_journey: {journey: welcome, reason: gone}}]}
rule_sets: {vips: {events: [vip_named, vip_gone], rules: [in, out]}}
"""
    )
    stage.tell("vip_named", user_id="ada")
    assert stage.path() == ["1"]
    stage.tell("vip_gone", user_id="ada")
    assert stage.path() == ["1", "gone"]


def test_somebody_who_enters_a_segment_enters_its_journey() -> None:
    stage = Stage("""
segments: {vips: {when: {field: tags, contains: vip}}}
journeys:
  cherish:
    trigger: {segment: vips}
    exit_on: {segment_left: vips}
    steps: [{wait: 1d}, {send: hello}]
""")
    stage.tell("tag_added", user_id="ada", properties={"tag": "vip"})
    stage.tell("segment_entered", user_id="bob", properties={"segment": "vips"})
    stage.tell("tag_removed", user_id="ada", properties={"tag": "vip"})
    assert stage.path() == ["exit_on"]
    assert stage.told("bob") == []


# --- much at once -----------------------------------------------------------------------------


def test_an_event_that_begins_more_than_one_commit_takes_begins_all_of_it() -> None:
    mails = ", ".join("{send: mail_" + letter + "}" for letter in "abcdefgh")
    journeys = "".join(
        f"  j{number}: {{trigger: {{event: signed_up}}, exit_on: {{event: gone}}, "
        f"steps: [{mails}, {{wait: 1d}}, {{send: last}}]}}\n"
        for number in range(30)
    )
    stage = Stage(f"journeys:\n{journeys}")
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + HOUR)
    assert len(stage.got()) == 30 * 8
    assert len({data["occurrence"] for _, _, data in stage.mails}) == 30 * 8
    assert len({each["run"] for each in stage.told()}) == 1, "one event let the person into all of them"
    stage.tell("gone", user_id="ada")
    stage.until(STARTS_AT + 2 * DAY)
    assert [each["reason"] for each in stage.told() if each.get("reason")] == ["exit_on"] * 30
    assert len(stage.got()) == 30 * 8
    person = stage.engine.reader.person("default", "user_id:ada")
    types = {each.event.type for each in stage.engine.reader.events(person, limit=1_000)}
    assert "threadline.cascade_cut" not in types


def test_a_run_stays_with_whoever_entered_when_a_person_is_split() -> None:
    stage = Stage(WELCOME)
    stage.tell("identify", user_id="ada", email="ada@example.com")
    stage.tell("signed_up", user_id="ada")
    stage.until(STARTS_AT + DAY)
    stage.ask("people_split", id="ada", identifiers=["email:ada@example.com"], request="apart")
    stage.until(STARTS_AT + 20 * DAY)
    assert stage.path()[-1] == "completed"
    other = stage.engine.reader.person("default", "email:ada@example.com")
    views = stage.engine.reader.views(other, stage.now, names=["journeys"])
    assert views["journeys"]["active"] == {}
    assert [template for _, template in stage.got()] == ["hello", "goodbye", "reminder"]


@pytest.mark.parametrize("known", [version(1, "keep"), "journeys: {other: {steps: [{send: hello}]}}"])
def test_a_process_that_does_not_know_a_version_yet_leaves_it_to_one_that_does(known: str) -> None:
    stage = Stage(known)
    stage.tell("identify", user_id="bob", properties={"name": "Bob"})
    later = stage.redefined(version(2, "keep"))
    later.tell("signed_up", user_id="ada")
    stage.now = later.now
    stage.until(STARTS_AT + 6 * DAY)
    assert stage.path() == ["first"]
    later.until(STARTS_AT + 7 * DAY)
    assert [template for _, template in later.got()] == ["hello", "two"]


ACTING = """
points: {}
destinations: {crm: {url: "https://crm.example.com/hooks"}}
journeys:
  club: {reentry: always, steps: [{tag: "member of ${journey.variables.level}"}, {wait: 5d}, {send: magazine}]}
  welcome:
    trigger: {event: signed_up, map: {plan: event.properties.plan}}
    steps:
      - tag: new
      - trait: {stage: trial, came_at: "${event.occurred_at}"}
      - points: {points: 50, reason: for joining}
      - fact: {type: plan, value: "${traits.stage} of ${journey.variables.plan}"}
      - if: {field: traits.stage, equals: trial}
        then: [{send: hello}]
      - start: {journey: club, variables: {level: "${journey.variables.plan}"}}
      - wait: 1d
      - webhook: {destination: crm, payload: {plan: "${journey.variables.plan}", points: "${points.balance}"}}
      - untag: new
      - leave: {journey: club, reason: enough}
"""


def test_steps_act_each_once_and_a_question_sees_what_was_done_before_it() -> None:
    stage = Stage(ACTING)
    stage.tell("signed_up", user_id="ada", properties={"plan": "pro"})
    stage.until(STARTS_AT + DAY + HOUR)
    person = stage.engine.reader.person("default", "user_id:ada")
    views = stage.engine.reader.views(person, stage.now, names=["profile", "points", "memory"])
    assert (views["profile"]["traits"]["stage"], views["points"]["balance"]) == ("trial", 50)
    assert views["profile"]["tags"] == ["member of pro"]
    facts = [each.event.properties for each in stage.engine.reader.all_events(person, types={"fact_computed"})]
    assert facts == [{"type": "plan", "key": "plan", "value": "trial of pro"}]
    assert stage.got() == [("2026-01-01T00:00", "hello")]
    left = [(each["journey"], each["reason"]) for each in stage.told() if "reason" in each]
    assert left == [("welcome", "completed"), ("club", "enough")]
    (call,) = stage.calls
    assert call["payload"] == {"plan": "pro", "points": 50}
    assert (call["type"], call["journey"], call["step"]) == ("journey_step", "welcome", "8")


def test_an_action_that_cannot_be_filled_in_is_left_out_with_its_reason_and_the_run_goes_on() -> None:
    stage = Stage("""
journeys:
  welcome:
    trigger: {event: signed_up}
    steps: [{points: "${event.properties.points}"}, {tag: "${event.properties.tag}"}, {send: hello}]
""")
    stage.tell("signed_up", user_id="ada", properties={"points": "many"})
    stage.work()
    (entered,) = stage.told()
    assert entered["actions"] == [
        {"step": "1", "action": "points", "problem": "`points` cannot be 'many'"},
        {"step": "2", "action": "tag", "problem": "`tag` cannot be 'None'"},
    ]
    assert [template for _, template in stage.got()] == ["hello"]


def test_a_control_group_gets_no_action() -> None:
    text = "journeys: {j: {trigger: {event: began}, holdout: 0.99, steps: [{tag: a}, {start: k}, {send: m}]}, k: KEPT}"
    stage = Stage(text.replace("KEPT", "{steps: [{tag: b}]}"))
    for number in range(5):
        stage.tell("began", user_id=f"u{number}")
    stage.work()
    told = [each for number in range(5) for each in stage.told(f"u{number}")]
    assert len([each for each in told if each.get("holdout")]) >= 4
    assert not [each for each in told if each.get("holdout") and ("actions" in each or each["journey"] == "k")]


def test_journeys_that_cause_each_other_by_a_tag_do_not_go_on_without_end() -> None:
    stage = Stage("""
journeys:
  ping: {trigger: {event: tag_added}, reentry: always, steps: [{untag: a}, {tag: b}]}
  pong: {trigger: {event: [began, tag_removed]}, reentry: always, steps: [{tag: a}]}
""")
    stage.tell("began", user_id="ada")
    stage.until(STARTS_AT + HOUR)
    assert 2 <= len([each for each in stage.told() if each["type"] == "journey_entered"]) <= 4


def test_history_makes_no_step_act() -> None:
    stage = Stage("journeys: {j: {trigger: {event: began}, steps: [{tag: a}, {points: 5}]}}")
    stage.tell("began", user_id="ada", historical=True)
    stage.work()
    assert stage.told() == []


CARTS = """
journeys:
  cart:
    key: event.properties.cart
    at_once: 3
    reentry: 2d
    trigger: {event: cart_changed}
    exit_on: {event: cart_emptied, where: {cart: "${journey.key}"}}
    steps:
      - id: ordered
        wait: {event: order_completed, where: {cart: "${journey.key}"}, timeout: 1d}
        then: [{tag: "ordered ${journey.key}"}]
        else: [{send: reminder}]
"""


def carts(stage: Stage) -> dict[object, str]:
    """Of each cart where its newest run is, or why it ended."""
    runs = stage.ask("journeys_of", id="user_id:ada")["executions"]
    return {run["key"]: run["reason"] or run["step"] for run in reversed(runs)}


def test_a_journey_with_a_key_has_a_run_for_each_cart_and_what_is_said_of_one_moves_no_other() -> None:
    stage = Stage(CARTS)
    for cart in ("a", 17, "b"):
        stage.tell("cart_changed", user_id="ada", properties={"cart": cart})
    stage.tell("cart_changed", user_id="ada", properties={"cart": 17})
    assert carts(stage) == {"a": "ordered", 17: "ordered", "b": "ordered"}
    stage.tell("order_completed", user_id="ada", properties={"cart": 17})
    stage.tell("cart_emptied", user_id="ada", properties={"cart": "b"})
    assert carts(stage) == {"a": "ordered", 17: "completed", "b": "exit_on"}
    stage.until(STARTS_AT + 30 * HOUR)
    assert carts(stage) == {"a": "completed", 17: "completed", "b": "exit_on"}
    assert stage.got() == [("2026-01-02T00:00", "reminder")]
    person = stage.engine.reader.person("default", "user_id:ada")
    views = stage.engine.reader.views(person, stage.now, names=["profile"])
    assert views["profile"]["tags"] == ["ordered 17"]


def test_so_many_runs_at_once_as_declared_and_again_by_key_after_the_time_of_reentry() -> None:
    stage = Stage(CARTS)
    for cart in "abcd":
        stage.tell("cart_changed", user_id="ada", properties={"cart": cart})
    assert carts(stage) == dict.fromkeys("abc", "ordered")
    stage.tell("cart_emptied", user_id="ada", properties={"cart": "a"})
    stage.tell("cart_changed", user_id="ada", properties={"cart": "a"})
    stage.tell("cart_changed", user_id="ada", properties={"cart": "d"})
    assert carts(stage) == {"a": "exit_on", "b": "ordered", "c": "ordered", "d": "ordered"}
    stage.until(STARTS_AT + 3 * DAY)
    stage.tell("cart_changed", user_id="ada", properties={"cart": "a"})
    assert carts(stage)["a"] == "ordered"


def test_an_event_without_a_key_begins_no_run_and_an_operator_brings_it_as_a_variable() -> None:
    stage = Stage(CARTS)
    for properties in ({}, {"cart": None}, {"cart": ""}, {"cart": True}, {"cart": ["a"]}, {"cart": "x" * 500}):
        stage.tell("cart_changed", user_id="ada", properties=properties)
    assert carts(stage) == {}
    assert not stage.ask("journeys_enter", id="user_id:ada", name="cart")["done"]
    assert stage.ask("journeys_enter", id="user_id:ada", name="cart", variables={"key": "a"})["done"]
    assert carts(stage) == {"a": "ordered"}
    assert stage.ask("journeys_exit", id="user_id:ada", name="cart")["done"]
    assert carts(stage) == {"a": "requested"}


def test_people_in_a_journey_with_a_key_are_listed_with_each_of_their_runs_page_by_page() -> None:
    stage = Stage(CARTS)
    for who in ("ada", "bob"):
        for cart in "ab":
            stage.tell("cart_changed", user_id=who, properties={"cart": cart})
    runs, cursor = [], ""
    while True:
        page = stage.ask("journeys_people", name="cart", limit=1, cursor=cursor)
        runs += [(each["identifiers"], each["run"]) for each in page["people"]]
        if not (cursor := page["next"]):
            break
    assert len(set(map(str, runs))) == 4
    assert sorted(who for (who,), _ in runs) == ["user_id:ada"] * 2 + ["user_id:bob"] * 2


def test_of_two_merged_people_with_one_cart_the_first_run_goes_on_and_after_a_split_each() -> None:
    stage = Stage(CARTS)
    stage.tell("cart_changed", user_id="ada", properties={"cart": "a"})
    stage.tell("cart_changed", user_id="bob", properties={"cart": "a"})
    stage.tell("cart_changed", user_id="bob", properties={"cart": "b"})
    stage.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)
    runs = [(run["key"], run["reason"]) for run in stage.ask("journeys_of", id="user_id:ada")["executions"]]
    assert sorted(runs) == [("a", ""), ("a", "merged"), ("b", "")]
    person = stage.engine.reader.person("default", "user_id:ada")
    (merge,) = stage.engine.reader.all_events(person, types={MERGED})
    stage.ask("people_unmerge", id=merge.id)
    stage.until(STARTS_AT + 2 * DAY)
    assert [len(stage.ask("journeys_of", id=f"user_id:{who}")["executions"]) for who in ("ada", "bob")] == [1, 2]
    assert [stage.got(who) for who in ("ada", "bob")] == [
        [("2026-01-02T00:00", "reminder")],
        [("2026-01-02T00:00", "reminder")] * 2,
    ]


def test_a_run_that_goes_on_is_never_forgotten_for_later_ones() -> None:
    stage = Stage("""
journeys:
  cart:
    key: event.properties.cart
    trigger: {event: cart_changed}
    exit_on: {event: cart_emptied, where: {cart: "${journey.key}"}}
    steps: [{wait: 90d}, {send: reminder}]
""")
    for cart in range(80):
        stage.tell("cart_changed", user_id="ada", properties={"cart": cart})
        if cart:
            stage.tell("cart_emptied", user_id="ada", properties={"cart": cart})
    assert carts(stage)[0] == "1"
    assert len(carts(stage)) == 64
    stage.until(STARTS_AT + 100 * DAY)
    assert [template for _, template in stage.got()] == ["reminder"]
