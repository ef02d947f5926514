"""What is declared of segments: what other conditions make of members, and what each mistake is told."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import STARTS_AT, Asked, job
from tests.capabilities.segments_stage import SPENDERS, bought, members, redefined, told, work
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.profile.segments.events import SEGMENTS_REFRESHED
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.store import feed_pages
from threadline.kernel.time import DAY


def refreshed(asked: Asked) -> tuple[int, int]:
    """How many people a refresh looked at, and for how many there was something to do."""
    before = requests(asked)
    counts = job(asked, "segments_refresh")
    return counts["people"], requests(asked) - before


def requests(asked: Asked) -> int:
    entries = feed_pages(asked.engine.store)
    return sum(each.entry.type == SEGMENTS_REFRESHED for each in entries)


@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_refreshing_tells_what_other_conditions_make_of_everybody(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", limit)
    asked = Asked(definitions=SPENDERS)
    for number in range(10):
        bought(asked, f"u{number}", 70 + 5 * number)  # 70, 75 … 115
    assert len(members(asked, "spenders")) == 7
    other = redefined(asked, SPENDERS.replace("80", "100"))
    assert len(members(other, "spenders")) == 7
    # Three leave, seven were and stay out or were and stay in; of the latter the new version is told.
    assert refreshed(other) == (10, 7)
    assert len(members(other, "spenders")) == 3
    assert told(other, "u9") == [("segment_entered", "spenders"), ("segment_kept", "spenders")]
    assert told(other, "u3") == [("segment_entered", "spenders"), ("segment_left", "spenders")]
    assert refreshed(other) == (10, 0)
    wider = redefined(other, SPENDERS.replace("80", "72"))
    assert refreshed(wider) == (10, 9)
    assert len(members(wider, "spenders")) == 9


def test_a_member_of_older_conditions_is_looked_at_with_the_next_event_of_any_type() -> None:
    asked = Asked(definitions=SPENDERS)
    for who, total in (("ada", 90), ("bob", 120)):
        bought(asked, who, total)
    other = redefined(asked, SPENDERS.replace("80", "100"))
    for who in ("ada", "bob"):
        for _ in range(2):
            other.tell("page", user_id=who)
    assert told(other, "ada")[-1] == ("segment_left", "spenders")
    assert told(other, "bob") == [("segment_entered", "spenders"), ("segment_kept", "spenders")]


def test_refreshing_sets_the_timers_that_new_segments_need() -> None:
    asked = Asked(definitions=SPENDERS)
    asked.tell("page", at=STARTS_AT, user_id="ada")
    other = redefined(asked, "segments: {lapsed: {when: {field: features.recency_days, greater_than_or_equal: 5}}}")
    assert refreshed(other) == (1, 1)
    assert refreshed(other) == (1, 0)
    assert told(other) == []
    other.now += 10 * DAY
    work(other)
    assert told(other) == [("segment_entered", "lapsed")]
    person = other.engine.reader.person("default", "user_id:ada")
    (entered,) = other.engine.reader.events(person, types=frozenset({"segment_entered"}))
    assert entered.event.occurred_at == STARTS_AT + 5 * DAY


def test_a_segment_that_is_declared_no_more_is_left() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 100)
    other = redefined(asked, "segments: {}")
    assert refreshed(other) == (1, 1)
    assert told(other) == [("segment_entered", "spenders"), ("segment_left", "spenders")]
    again = redefined(other, SPENDERS)
    assert members(again, "spenders") == []
    assert refreshed(again) == (1, 1)
    assert len(members(again, "spenders")) == 1


def test_another_order_of_words_is_no_other_version() -> None:
    def version(text: str) -> str:
        asked = Asked(definitions=text)
        return str(asked.ask("segments_list")["segments"][0]["version"])

    when = "{greater_than: 80, field: features.monetary_total}"
    same = f"segments:\n  spenders:\n    description: Other words.\n    when: {when}\n"
    assert version(SPENDERS) == version(same)
    assert version(SPENDERS) != version(SPENDERS.replace("80", "81"))


# --- mistakes ---------------------------------------------------------------------------------

MISTAKES = [
    ("segments: [a]", "t.yaml:1: `segments` must be a mapping"),
    ("segments: {Big: {when: {field: tags, contains: vip}}}", "t.yaml:1: 'Big' is not a valid segment name"),
    ("segments:\n  a: {}", "t.yaml:2: segment 'a' needs `when`"),
    ("segments:\n  a: {wen: 1}", "t.yaml:2: segment 'a': unknown key 'wen'; did you mean 'when'?"),
    (
        "segments:\n  a: {when: {field: event.type, equals: x}}",
        "t.yaml:2: segment 'a': a segment depends on what is known of",
    ),
    (
        "segments:\n  a: {when: {field: segments, contains: x}}",
        "t.yaml:2: segment 'a': of another segment name since when somebody belongs to it, such as segments.vip.since",
    ),
    (
        "segments:\n  a: {when: {field: segments.b.version, equals: x}}",
        "t.yaml:2: segment 'a': of another segment name since when somebody belongs to it",
    ),
    (
        "segments:\n  vip: {when: {field: tags, contains: v}}\n  a: {when: {field: segments.vop.since, exists: true}}",
        "t.yaml:3: segment 'a': there is no segment 'vop'; did you mean 'vip'?",
    ),
    (
        "segments:\n  a: {when: {field: segments.a.since, exists: true}}",
        "t.yaml:2: segment 'a': segments depend on each other in a circle: a → a; break it",
    ),
    (
        (
            "segments:\n  a: {when: {field: segments.b.since, exists: true}}\n"
            "  b: {when: {field: segments.a.since, gt: x}}"
        ),
        "t.yaml:3: segment 'b': segments depend on each other in a circle: a → b → a; break it",
    ),
    (
        "segments:\n  a:\n    when:\n      all:\n        - {field: tags, contain: x}",
        "t.yaml:5: segment 'a': `when`: unknown operator",
    ),
    (
        "segments:\n  a: {when: {field: featurs.x, exists: true}}",
        "t.yaml:2: segment 'a': nothing is known under 'featurs'; did you mean 'features'?",
    ),
    (
        "segments:\n  a: {when: {field: features.monetary_totl, exists: true}}",
        "t.yaml:2: segment 'a': features has no 'monetary_totl'; did you mean 'monetary_total'?",
    ),
    (
        "segments:\n  a: {when: {field: traits.country, equals: NO}}",
        "t.yaml:2: YAML reads NO as false; write false, or put 'NO' in quotes",
    ),
    (
        (
            "segments:\n  a:\n    when:\n      not:\n"
            "        field: traits.postcode\n        in: ['01234',\n          01234]"
        ),
        "t.yaml:7: YAML reads 01234 as 668; write 668, or put '01234' in quotes",
    ),
    (
        "segments:\n  a: {when: {field: traits.opens, less_than: 12:30}}",
        "t.yaml:2: YAML reads 12:30 as 750; write 750, or put '12:30' in quotes",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=lambda each: each[:60])
def test_a_mistake_is_named_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue(discover(definitions=Definitions([("t.yaml", text)])), rules())
    assert any(line.startswith(message) for line in str(raised.value).splitlines()), str(raised.value)


def test_what_yaml_reads_as_it_looks_needs_no_quotes() -> None:
    told = "[{f, equals: false}, {f, in: [True, 0, -0.5, 0x1f, 1_000, SE]}, {f, equals: 'NO'}, {f, exists: yes}]"
    text = "segments: {a: {when: {any: TOLD}}}".replace("TOLD", told.replace("{f,", "{field: traits.x,"))
    discover(definitions=Definitions([("t.yaml", text)]))


def test_a_name_that_two_files_declare_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"b.yaml:1: segment 'spenders' is already declared at a.yaml:1"):
        discover(definitions=Definitions([("a.yaml", SPENDERS), ("b.yaml", SPENDERS)]))


# --- the job ----------------------------------------------------------------------------------


def test_a_refresh_goes_on_where_it_was_killed_and_one_that_runs_is_not_begun_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", 3)
    asked = Asked(definitions=SPENDERS)
    for number in range(10):
        bought(asked, f"u{number}", 70 + 5 * number)
    other = redefined(asked, SPENDERS.replace("80", "100"))
    id = other.ask("segments_refresh")["id"]
    assert other.ask("segments_refresh")["id"] == id
    Dispatcher(other.engine, {}, "killed").run_once()
    counts = other.ask("jobs_show", id=id)["counts"]
    assert counts == {"people": 3}
    other.now += DAY  # its lease runs out
    assert job(other, "segments_refresh")["people"] == 10
    assert requests(other) == 7
    assert other.ask("segments_refresh")["id"] != id


def test_a_refresh_waits_for_a_process_that_has_its_definitions_and_fails_once_others_are_filled() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 90)
    other = redefined(asked, SPENDERS.replace("80", "100"))
    id = other.ask("segments_refresh")["id"]
    Dispatcher(asked.engine, {}, "before").run_once()
    assert asked.ask("jobs_show", id=id)["counts"] == {}
    assert len(members(asked, "spenders")) == 1
    asked.now += DAY
    Dispatcher(asked.engine, {}, "before").run_once()
    assert "with the definitions" in asked.ask("jobs_show", id=id)["waits_for"]
    cursor = asked.ask("definitions_apply")["next"]
    while cursor:
        cursor = asked.ask("definitions_apply", cursor=cursor)["next"]
    asked.now += DAY
    Dispatcher(asked.engine, {}, "before").run_once()
    job = asked.ask("jobs_show", id=id)
    assert (job["state"], "in force no more" in job["problem"]) == ("failed", True)
