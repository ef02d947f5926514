"""What-if as callers meet it: whole answers of small histories, candidates of every kind, errors, results."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.capabilities.whatif_stage import Tried, yaml
from tests.mortal import Fate, Killed
from threadline.capabilities.decide.whatif.comparison import Tally
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.simulation import run
from threadline.kernel.errors import Conflict, InvalidDefinition, InvalidValue, NotFound, TooManyRequests
from threadline.kernel.event import Recorded
from threadline.kernel.job_kind import JOB_FAILURES_MAX
from threadline.kernel.policy import CASCADE_CUT, POLICY_FAILED, Emit, Policy, PolicyView, Wish
from threadline.kernel.projection import Projection
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time


def rule(above: float, *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "conditions": {"field": "features.monetary_total", "greater_than": above},
        "actions": [{"store_decision": {"result": "approve"}}, *actions],
        **more,
    }


def big(above: float, **more: Any) -> dict[str, Any]:
    return {"conditions": {"field": "event.properties.total", "greater_than": above}, **more}


BASE = yaml(
    {
        "rules": {"good": rule(80, version=1)},
        "rule_sets": {"buys": {"events": ["purchase_completed"], "rules": ["good"]}},
        "segments": {"goods": {"when": {"field": "tags", "contains": "good"}}},
        "points": {"tables": [{"version": 2, "from": "2000-01-01", "earn": {"purchase_completed": 10}}]},
    }
)


@pytest.fixture
def shop() -> Tried:
    """Ada buys for 60, 15 and 10, Bob for 50 and 100, Cy for 5."""
    tried = Tried(BASE)
    for user, totals in {"ada": (60, 15, 10), "bob": (50, 100), "cy": (5,)}.items():
        for total in totals:
            tried.now += DAY
            tried.tell("purchase_completed", user_id=user, properties={"total": total, "currency": "EUR"})
    return tried


MOVED = {"field": "features.monetary_total", "operator": "greater_than", "old": 80, "new": 70}


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (rule(70), [MOVED]),
        (rule(70, name="Another name"), [MOVED]),
        (rule(70, priority=3), []),
        (rule(70, {"tag": {"tag": "good"}}), []),
        (rule(70) | {"conditions": {"field": "features.monetary_total", "less_than": 70}}, []),
        (rule(70) | {"conditions": {"all": [{"field": "features.monetary_total", "greater_than": 80}]}}, []),
    ],
)
def test_what_moved_is_listed_where_nothing_but_values_differs(
    shop: Tried, content: dict[str, Any], values: list[Any]
) -> None:
    (change,) = shop.what_if(rule="good", content=content)["changes"]
    assert (change["rule"], change["old"], change["new"], change["values"]) == ("good", "version 1", "draft", values)


def test_a_rule_of_another_name_decides_as_before(shop: Tried) -> None:
    assert shop.what_if(rule="good", content=rule(80, name="Another name"))["changes"] == []


def test_a_name_in_a_content_that_nothing_has_is_refused(shop: Tried) -> None:
    with pytest.raises(InvalidDefinition, match="there is no journey 'welcom'"):
        shop.what_if(rule="good", content=rule(70, {"enter_journey": {"journey": "welcom"}}))


def test_a_lower_threshold_is_told_answer_by_answer(shop: Tried) -> None:
    answer = shop.what_if(rule="good", content=rule(70))
    assert (answer["people"], answer["decisions"], answer["same"], answer["changed"]) == (3, 6, 5, 1)
    cells = {(each["old"], each["new"]): (each["same"], each["changed"]) for each in answer["matrix"]}
    assert cells == {("Approved", "Approved"): (2, 0), ("NoMatch", "Approved"): (0, 1), ("NoMatch", "NoMatch"): (3, 0)}
    (sample,) = answer["samples"]
    ada = shop.ask("person", id="user_id:ada")["id"]
    assert (sample["person"], sample["changed"], sample["type"]) == (ada, 1, "purchase_completed")
    assert (sample["step"]["new"]["actual"], sample["step"]["new"]["expected"]) == (75, 70)
    (totals,) = answer["rules"]
    assert (totals["asked"], totals["changed"], totals["people"], totals["errors"]) == (6, 1, 1, 0)
    assert (totals["old"], totals["new"]) == ({"Approved": 2}, {"Approved": 3})
    assert "-  greater_than: 80" in answer["diff"]
    assert "+  greater_than: 70" in answer["diff"]


def test_what_rules_put_into_threads_counts_for_what_comes_after(shop: Tried) -> None:
    tagged = rule(70, {"tag": {"tag": "good"}}, {"award_points": {"points": 3}})
    second = {"version": 1, "conditions": {"field": "tags", "contains": "good"}, "actions": []}
    candidate = {
        "rules": {"good": {**tagged, "version": 2}, "tagged": second},
        "rule_sets": {
            "buys": {"events": ["purchase_completed"], "rules": ["good"]},
            "later": {"events": ["tag_added"], "rules": ["tagged"]},
        },
    }
    answer = shop.what_if(definitions=yaml(candidate))
    totals = {each["rule"]: each for each in answer["rules"]}
    # Ada is good after 75 and after 85, Bob after 150: each time a tag is put on, of which the other rule is asked.
    assert totals["tagged"]["new"] == {"Matched": 3}
    assert [(each["segment"], each["entered"], each["left"]) for each in answer["segments"]] == [("goods", 2, 0)]
    assert answer["points"] == {"people": 2, "earned": 9, "balance": 9}
    assert {each["action"]: (each["old"], each["new"]) for each in answer["actions"]}["award_points"] == (0, 3)
    assert shop.ask("person", id="user_id:ada")["tags"] == []


def test_other_points_are_lived_again(shop: Tried) -> None:
    answer = shop.what_if(
        definitions=yaml(
            {"points": {"tables": [{"version": 2, "from": "2000-01-01", "earn": {"purchase_completed": 12}}]}}
        )
    )
    assert answer["points"] == {"people": 3, "earned": 12, "balance": 12}
    assert (answer["changed"], answer["failed"]) == (0, 0)


def test_limits_hold_for_what_comes_late_in_another_life_too() -> None:
    def definitions(points: int) -> str:
        rule = {"points": points, "cooldown": "10m"}
        return yaml({"points": {"tables": [{"version": points, "from": "2000-01-01", "earn": {"quiz_won": rule}}]}})

    tried = Tried(definitions(20))
    start = tried.now
    for _ in range(70):
        tried.tell("quiz_won", user_id="ada")
        tried.now += 10 * MINUTE
    for second in range(5):
        tried.tell("quiz_won", user_id="ada", at=start - HOUR + second * SECOND)
    assert tried.ask("points_of", id="user_id:ada")["earned"] == 71 * 20
    assert tried.what_if(definitions=definitions(30))["points"] == {"people": 1, "earned": 710, "balance": 710}


def test_another_feature_changes_what_rules_read_and_who_belongs(shop: Tried) -> None:
    twice = {"aggregate": "max", "events": "purchase_completed", "of": "total", "version": 2}
    candidate = yaml(
        {
            "features": {"monetary_total": twice},
            "segments": {"big": {"when": {"field": "features.monetary_total", "greater_than": 55}}},
        }
    )
    answer = shop.what_if(definitions=candidate)
    # The largest purchase of Ada is 60, so that she is never good; Bob is from his 100 on, as before.
    assert (answer["changed"], answer["people_changed"]) == (1, 1)
    assert answer["rules"][0]["new"] == {"Approved": 1}
    assert {each["segment"]: each["entered"] for each in answer["segments"]} == {"big": 2}


def test_the_range_and_the_types_say_what_is_counted(shop: Tried) -> None:
    for params, counted in (
        ({"since": "3d"}, 3),
        ({"stop": format_time(shop.now - 3 * DAY)}, 3),
        ({"start": format_time(shop.now - 3 * DAY), "stop": format_time(shop.now - DAY)}, 2),
        ({"types": ["identify"]}, 0),
        ({"people": ["user_id:ada"]}, 3),
    ):
        answer = shop.what_if(rule="good", content=rule(70), **params)
        assert answer["decisions"] == counted, params


def test_what_came_before_the_range_is_known_in_it(shop: Tried) -> None:
    answer = shop.what_if(rule="good", content=rule(84), people=["user_id:ada"], start=format_time(shop.now - 4 * DAY))
    assert (answer["decisions"], answer["rules"][0]["old"], answer["rules"][0]["new"]) == (
        1,
        {"Approved": 1},
        {"Approved": 1},
    )


def test_errors_of_a_candidate_are_told_and_stop_nothing(shop: Tried) -> None:
    broken = rule(70, {"award_points": {"points": "${event.properties.total}"}})
    shop.tell("purchase_completed", user_id="cy", properties={"total": "99.5", "currency": "EUR"})
    answer = shop.what_if(rule="good", content=broken)
    # 99.5 points cannot be awarded; whole amounts can.
    assert (answer["people"], answer["errors"], answer["failed"]) == (3, 1, 0)
    (totals,) = answer["rules"]
    assert (totals["errors"], totals["new"]) == (1, {"Approved": 3, "Error": 1})


def test_what_is_cut_is_told_as_live() -> None:
    always = {"version": 1, "conditions": {"field": "event.type", "exists": True}}
    rules = {f"r{number:02d}": {**always, "priority": number} for number in range(30)}
    rules["again"] = {**always, "actions": [{"emit_event": {"type": "looped"}}]}
    rules["sends"] = {**always, "actions": [{"send_notification": {"message": "hello"}}] * 20}
    sets = {
        "all": {"events": ["applied"], "rules": [f"r{number:02d}" for number in range(30)]},
        "loop": {"events": ["looped"], "rules": ["again"]},
        "sent": {"events": ["sent"], "rules": ["sends"]},
        "few": {"events": ["asked"], "rules": ["r01", "r02"]},
    }
    base = yaml({"rules": rules, "rule_sets": sets})
    tried = Tried(base)
    for type in ("applied", "looped", "sent", "asked", "applied"):
        tried.now += DAY
        tried.tell(type, user_id="ada")
    assert (
        len(
            tried.engine.reader.events(
                tried.engine.reader.person("default", "user_id:ada"), types=frozenset({CASCADE_CUT})
            )
        )
        == 3
    )
    # Whether anybody looks at decisions makes no difference.
    for more in ({}, {"features": {"told": {"aggregate": "count", "events": "decision_made"}}}):
        answer = tried.what_if(definitions=yaml({"rules": rules, "rule_sets": sets, **more}))
        assert (answer["cut"], answer["changed"]) == (3, 0)
    fewer = {**sets, "all": {"events": ["applied"], "rules": ["r01", "r02"]}}
    assert tried.what_if(definitions=yaml({"rule_sets": fewer}))["cut"] == 1


def test_a_person_of_whose_history_something_was_cut_is_not_compared_with_what_was_recorded() -> None:
    rules = {
        f"r{number:02d}": {"version": 1, "conditions": {"field": "event.properties.total", "greater_than": number}}
        for number in range(40)
    }
    tried = Tried(yaml({"rules": rules, "rule_sets": {"all": {"events": ["paid"], "rules": list(rules)}}}))
    for user, total in (("ada", 50), ("bob", 5)):
        tried.tell("paid", user_id=user, properties={"total": total})
    answer = tried.what_if(definitions=yaml({"rules": rules}), baseline="recorded")
    assert (answer["failed"], answer["changed"], answer["decisions"]) == (1, 0, 40)
    (problem,) = answer["failures"].values()
    assert "not all that came of an event was recorded" in problem
    tried.now += HOUR
    later = tried.what_if(
        definitions=yaml({"rules": rules}), baseline="recorded", start=format_time(tried.now - MINUTE)
    )
    assert later["failed"] == 0


def test_a_history_that_cannot_be_lived_fails_alone(shop: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    index = shop.engine.catalogue.index["profile"]
    projection = shop.engine.catalogue.projections[index]

    def view(state: Any, now: int, edges: Any) -> Any:
        if "bad" in state.get("tags", {}) or "bad" in str(state):
            raise RuntimeError("no such view")
        return projection.view(state, now, edges)

    shop.tell("tag_added", user_id="bob", properties={"tag": "bad"})
    shop.tell("purchase_completed", user_id="bob", properties={"total": 1, "currency": "EUR"})
    projections = list(shop.engine.catalogue.projections)
    projections[index] = dataclasses.replace(projection, view=view)
    monkeypatch.setattr(shop.engine.catalogue, "projections", tuple(projections))
    reading = {"conditions": {"field": "traits.name", "exists": False}, "actions": []}
    answer = shop.what_if(rule="good", content=reading)
    assert (answer["people"], answer["failed"]) == (3, 1)
    assert list(answer["failures"].values()) == ["RuntimeError: no such view"]
    assert answer["decisions"] == 4  # those of the others


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({}, InvalidValue, "give one of `rule` and `definitions`"),
        ({"definitions": "rules: {}", "version": 2}, InvalidValue, "`version` needs `rule`"),
        ({"rule": "good", "version": 7}, NotFound, "no version 7"),
        ({"rule": "good", "version": 1, "start": "2020-01-01", "since": "3d"}, InvalidValue, "one of `start`"),
        ({"rule": "good", "version": 1, "stop": "2099-01-01"}, InvalidValue, "stop is in the future"),
        ({"rule": "good", "version": 1, "since": "soon"}, InvalidValue, "is not a duration"),
        ({"rule": "other", "content": rule(1)}, InvalidValue, "no rule set names the rule 'other'"),
        (
            {"rule": "good", "content": {"conditions": {"field": "features.nope", "exists": True}}},
            InvalidDefinition,
            "features has no 'nope'",
        ),
        ({"definitions": "rules: ["}, InvalidDefinition, "definitions:1: this is not YAML"),
        ({"definitions": "rules: [", "file": "spring.yaml"}, InvalidDefinition, "spring.yaml:1: this is not YAML"),
        ({"definitions": "ruels: {}"}, InvalidDefinition, "did you mean 'rules'"),
        ({"definitions": "rules: {}"}, InvalidDefinition, "there is no rule 'good'; none is declared"),
        ({"rule": "good", "version": 1, "people": ["user_id:nobody"]}, NotFound, "nobody is known"),
        ({"rule": "good", "version": 1, "against": 1, "baseline": "recorded"}, InvalidValue, "goes with the baseline"),
    ],
)
def test_what_cannot_be_tried_is_refused(shop: Tried, params: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        shop.ask("what_if_run", wait=True, **params)


def test_what_decides_who_comes_in_is_left_aside_in_a_candidate(shop: Tried) -> None:
    others = '"identifiers": {"user_id": {"limit": 1}}, "settings": {"port": 1}, "event_schemas": {"page": {"not": {}}}'
    answer = shop.what_if(definitions=f"{BASE[:-1]}, {others}}}")
    assert answer["changed"] == 0
    assert "event_schemas" not in answer["new"]


def test_a_rule_that_no_set_names_is_asked_of_the_types_that_are_named(shop: Tried) -> None:
    answer = shop.what_if(rule="other", content=rule(100), types=["purchase_completed"])
    assert [(each["rule"], each["new"]) for each in answer["rules"]] == [
        ("good", {"Approved": 2}),
        ("other", {"Approved": 1}),
    ]


# --- results that are kept ---------------------------------------------------------------------


def test_results_are_kept_only_when_asked_and_can_be_compared(shop: Tried) -> None:
    first = shop.what_if(rule="good", content=rule(70), save=True, note="lower")
    second = shop.what_if(rule="good", content=rule(55), save=True)
    third = shop.what_if(rule="good", content=rule(40))
    kept = shop.ask("what_if_list")
    assert {each["id"]: each["note"] for each in kept["saved"]} == {first["id"]: "lower", second["id"]: ""}
    assert kept["running"] == [], "what is waited for is no job"
    difference = shop.ask("what_if_compare", one=first["id"], other=second["id"])
    assert (difference["changed"], difference["people_changed"]) == (1, 0)
    assert [(each["old"], each["new"], each["changed"]) for each in difference["matrix"] if each["changed"]] == [
        ("NoMatch", "Approved", 1)
    ]
    with pytest.raises(NotFound):
        shop.ask("what_if_compare", one=first["id"], other=third["id"])
    again = shop.ask("what_if_status", id=first["id"])
    assert (again["changed"], again["saved"], again["samples"]) == (first["changed"], True, first["samples"])


def test_results_are_comparable_that_asked_of_the_same_history(shop: Tried) -> None:
    stop = format_time(shop.now)
    people = ["user_id:ada", "user_id:bob"]
    asked = [
        {"people": people},
        {"people": people[::-1], "samples": 1, "note": "shows less"},
        {"people": people, "types": ["purchase_completed"]},
        {"people": people[:1]},
    ]
    one, *others = [shop.what_if(rule="good", content=rule(55), stop=stop, save=True, **more)["id"] for more in asked]
    assert [shop.ask("what_if_compare", one=one, other=other)["comparable"] for other in others] == [True, False, False]


def work(shop: Tried) -> None:
    dispatcher = Dispatcher(shop.engine, {}, "test")
    while dispatcher.run_once():
        pass


def test_what_if_that_nobody_waits_for_is_a_job_with_the_same_result(shop: Tried) -> None:
    asked = {"rule": "good", "content": rule(70), "stop": format_time(shop.now)}
    waited = shop.what_if(**asked)
    begun = shop.ask("what_if_run", **asked, save=True, note="kept")
    assert (begun["state"], begun["people"], begun["saved"]) == ("running", 0, False)
    work(shop)
    done = shop.ask("what_if_status", id=begun["id"])
    assert done["saved"]
    assert done | {"saved": False, "events_in_all": None} == waited
    found = shop.ask("what_if_list")
    assert [(each["id"], each["state"]) for each in found["running"]] == [(begun["id"], "done")]
    assert [(each["id"], each["note"]) for each in found["saved"]] == [(begun["id"], "kept")]
    again = shop.ask("what_if_run", **asked)
    assert again["id"] not in (begun["id"], ""), "events of that range may have come since"


def test_what_if_killed_at_any_commit_counts_everybody_once(shop: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PAGE_PEOPLE", 1)
    monkeypatch.setattr(job_worker, "JOB_PAGE", 1)
    asked = {"rule": "good", "content": rule(70), "stop": format_time(shop.now)}
    expected = shop.what_if(**asked)
    fate = Fate(shop.engine.store)
    for number in range(1, 40):
        id = shop.ask("what_if_run", **asked)["id"]
        fate.killed_at, fate.through = fate.commits + number, number % 3
        try:
            work(shop)
        except Killed:
            shop.now += HOUR  # the lease of the dead has ended
            work(shop)
            found = shop.ask("what_if_status", id=id)
            assert found | {"id": expected["id"], "events_in_all": None} == expected
            continue
        assert number > 3
        return
    raise AssertionError("it was killed at every commit")


def test_what_if_is_cancelled_and_resumed_and_workspaces_see_their_own(
    shop: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PAGE_PEOPLE", 1)
    monkeypatch.setattr(job_worker, "JOB_PAGE", 1)
    asked = {"rule": "good", "content": rule(70), "stop": format_time(shop.now)}
    id = shop.ask("what_if_run", **asked)["id"]
    for operation in ("what_if_status", "what_if_cancel", "what_if_resume"):
        with pytest.raises(NotFound):
            shop.ask(operation, id=id, workspace="other")
    assert shop.ask("what_if_list", workspace="other") == {"running": [], "saved": [], "next": ""}
    Dispatcher(shop.engine, {}, "test").run_once()
    cancelled = shop.ask("what_if_cancel", id=id)
    assert (cancelled["state"], cancelled["people"]) == ("cancelled", 1)
    work(shop)
    assert shop.ask("what_if_status", id=id)["people"] == 1
    assert shop.ask("what_if_resume", id=id)["state"] == "running"
    work(shop)
    assert shop.ask("what_if_status", id=id) | {"events_in_all": None} == shop.what_if(**asked) | {"id": id}
    with pytest.raises(Conflict, match="is done; only one that was cancelled or has failed goes on"):
        shop.ask("what_if_resume", id=id)


def test_the_same_question_while_it_runs_is_answered_by_the_one_that_runs(shop: Tried) -> None:
    asked = {"rule": "good", "content": rule(70), "stop": format_time(shop.now)}
    first = shop.ask("what_if_run", **asked)
    assert shop.ask("what_if_run", **asked)["id"] == first["id"]
    with pytest.raises(Conflict, match="was started without `save`"):
        shop.ask("what_if_run", **asked, save=True)


def test_a_second_one_that_is_waited_for_is_refused_while_one_runs(
    shop: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[type] = []

    def meanwhile(*given: Any) -> bool:
        with pytest.raises(TooManyRequests, match="another what-if is running"):
            shop.what_if(rule="good", content=rule(55))
        refused.append(TooManyRequests)
        return False

    monkeypatch.setattr(Tally, "take", meanwhile)
    shop.what_if(rule="good", content=rule(70))
    assert refused


def test_job_fails_when_the_rules_it_was_compared_with_have_changed(shop: Tried) -> None:
    id = shop.ask("what_if_run", rule="good", content=rule(70), stop=format_time(shop.now))["id"]
    other = Tried(BASE.replace(yaml(rule(80, version=1)), yaml(rule(81, version=2))))
    other.engine = Engine(shop.engine.store, other.engine.catalogue, lambda: other.now)
    for _ in range(JOB_FAILURES_MAX):
        other.now = max(shop.now, other.now) + HOUR
        work(other)
    found = other.ask("what_if_status", id=id)
    assert (found["state"], "rules or definitions have changed since" in found["problem"]) == ("failed", True)


@pytest.mark.parametrize("historical", ["all", "by_set"])
def test_historical_events_are_counted_or_left_out_and_the_answer_says_how_many(historical: str) -> None:
    two = {"events": ["paid"], "rules": ["always"]}
    definitions = {
        "rules": {"always": {"conditions": {"field": "event.type", "exists": True}}, "big": big(80, version=1)},
        "rule_sets": {"no_history": {"events": ["paid"], "rules": ["big"]}, "history": {**two, "historical": True}},
    }
    tried = Tried(yaml(definitions))
    for number in range(6):
        past = {"historical": True, "at": tried.now - DAY} if number < 4 else {}
        tried.tell("paid", user_id="ada", properties={"total": 75}, **past)
    answer = tried.what_if(rule="big", content=big(70), historical=historical)
    counted = historical == "all"
    assert (answer["historical"], answer["historical_events"]) == (historical, 4)
    assert (answer["decisions"], answer["changed"], answer["same"]) == ((12, 6, 6) if counted else (8, 2, 6))
    assert {each["rule"]: each["asked"] for each in answer["rules"]} == {"always": 6, "big": 6 if counted else 2}
    assert answer["asked_of"] == {"paid": 6}
    live = tried.what_if(rule="big", version=1, baseline="recorded")
    assert (live["historical"], live["changed"], live["decisions"]) == ("by_set", 0, 8)


def test_where_every_set_hears_history_nothing_is_said_of_it(shop: Tried) -> None:
    assert shop.what_if(rule="good", content=rule(70))["historical_events"] == 0


def failing_at(total: int) -> Policy:
    """Answers `noticed` with `echoed`, and raises about one of a total."""

    def react(recorded: Recorded, person: PolicyView) -> list[Wish]:
        if recorded.event.properties["total"] == total:
            raise KeyError("no_such_key")
        return [Emit(type="echoed", key="e", occurred_at=recorded.event.occurred_at)]

    return Policy("echo", frozenset({"noticed"}), react, emits=frozenset({"echoed"}))


def failures() -> Projection:
    def fold(state: dict[str, int], recorded: Recorded) -> dict[str, int]:
        return {"count": state.get("count", 0) + 1}

    return Projection("failures", 1, frozenset({POLICY_FAILED}), dict, fold, lambda state, now, edges: dict(state))


@pytest.mark.policies_fail
def test_a_policy_that_raises_in_the_sandbox_fails_there_as_it_does_live() -> None:
    notice = {"emit_event": {"type": "noticed", "properties": {"total": "${event.properties.total}"}}}
    definitions = {
        "rules": {
            "noticing": big(0, version=1, actions=[notice]),
            "echoes": {"conditions": {"field": "event.type", "exists": True}},
            "careful": {"conditions": {"field": "failures.count", "equals": 1}},
        },
        "rule_sets": {
            "buys": {"events": ["paid"], "rules": ["noticing", "careful"]},
            "echo": {"events": ["echoed"], "rules": ["echoes"]},
        },
    }
    tried = Tried("{}")
    values = [*discover(definitions=Definitions([("threadline.yaml", yaml(definitions))])), failures(), failing_at(2)]
    tried.engine = Engine(tried.engine.store, Catalogue(values, rules(Definitions())), lambda: tried.now)
    for total in (1, 2, 3):
        tried.tell("paid", user_id="ada", properties={"total": total})
    for baseline in ("reckoned", "recorded"):
        # The same answers under another text of the rule, so that the policy reacts again.
        answer = tried.what_if(rule="noticing", content=big(0.5, actions=[notice]), baseline=baseline)
        assert (answer["failed"], answer["changed"]) == (0, 0)
        found = {each["rule"]: (each["old"], each["new"]) for each in answer["rules"]}
        assert found["echoes"] == ({"Matched": 2}, {"Matched": 2})
        assert found["careful"] == ({"Matched": 1}, {"Matched": 1}), "asked after the failure"
    later = tried.what_if(rule="noticing", content=big(1, actions=[notice]))
    assert {each["rule"]: each["new"] for each in later["rules"]}["echoes"] == {"Matched": 1}
    never = tried.what_if(rule="noticing", content=big(2, actions=[notice]))
    assert {each["rule"]: each["new"] for each in never["rules"]}["careful"] == {}


def test_history_of_which_old_events_have_left_by_their_age_is_decided_as_the_whole_one(shop: Tried) -> None:
    asked = {"rule": "good", "content": rule(85), "people": ["user_id:ada"], "start": format_time(shop.now - 4 * DAY)}
    whole = shop.what_if(**asked)["changes"]
    ada = shop.engine.reader.person("default", "user_id:ada")
    assert shop.engine.erasures.expiry.expire(ada.id, ["purchase_completed"], shop.now - 4 * DAY + HOUR) == 2
    assert shop.what_if(**asked)["changes"] == whole != []
