"""The curated tables: what the log says, reckoned in another way, whenever the lake and the tables were written."""

from __future__ import annotations

import os
from collections import defaultdict
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

import threadline
from tests.exports.curated_stage import ask, engine, happenings, in_order, lake_in, tables
from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.exports.curated.folded import folds_of
from threadline.exports.curated.writing import curate
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.files import read_table, write_part
from threadline.exports.lake.lake import IDENTITIES
from threadline.exports.lake.part import Part
from threadline.exports.lake.schema import pa
from threadline.exports.lake.sync import sync
from threadline.kernel.event import Recorded
from threadline.kernel.store import feed_pages, is_erased
from threadline.kernel.time import DAY, MINUTE, format_time
from threadline.stores.memory import MemoryStore


def recorded(seed: int, count: int = 80, days: int = 30) -> Engine:
    on = engine(MemoryStore())
    record(on, happenings(Random(seed), count, days))
    return on


def record(on: Engine, events: list[Any]) -> None:
    for start in range(0, len(events), 7):
        assert {each.status for each in on.recorder.record(events[start : start + 7])} == {"accepted"}


def by_person(on: Engine, workspace: str = "default") -> dict[str, list[Recorded]]:
    """Everybody's events in occurred order, those of one instant as recorded, by the log and the threads alone."""
    found = defaultdict(list)
    for one in feed_pages(on.store):
        if not is_erased(one.entry) and (event := unpack_event(one.entry)).event.workspace == workspace:
            person = on.reader.by_thread(event.thread)
            assert person is not None
            found[person.id].append(event)
    return {person: sorted(events, key=lambda each: each.event.occurred_at) for person, events in found.items()}


def day_of(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).date().isoformat()


def is_own(one: Recorded) -> bool:
    return one.event.source_type != "internal" and not one.event.type.startswith("threadline.") and not is_forged(one)


def is_forged(one: Recorded) -> bool:
    if one.event.type == "decision_made":
        return one.event.source_type != "internal"
    return one.event.source_type == "external" and one.event.type.startswith(("mail_", "points_"))


def test_sessions_are_the_runs_of_events_with_less_than_30_minutes_between() -> None:
    on = recorded(1, 80, 3)
    expected = []
    for person, events in by_person(on).items():
        runs: list[list[Recorded]] = []
        for one in filter(is_own, events):
            if runs and one.event.occurred_at - runs[-1][-1].event.occurred_at < 30 * MINUTE:
                runs[-1].append(one)
            else:
                runs.append([one])
        expected += [
            {
                "session": run[0].id,
                "person": person,
                "number": number,
                "day": day_of(run[0].event.occurred_at),
                "started_at": format_time(run[0].event.occurred_at),
                "ended_at": format_time(run[-1].event.occurred_at),
                "events": len(run),
                "first_type": run[0].event.type,
                "last_type": run[-1].event.type,
            }
            for number, run in enumerate(runs, 1)
        ]
    assert max(each["events"] for each in expected) > 2
    assert in_order(ask(on, None, "FROM sessions")) == in_order(expected)


def test_events_of_one_instant_go_in_recorded_order_in_sessions_as_in_paths() -> None:
    with threadline.open("memory:", clock=lambda: 40 * DAY) as shop:
        shop.record(
            [
                {"type": type, "identifiers": {"user_id": f"u{n}"}, "key": f"{n}{type}", "occurred_at": "1970-02-01"}
                for n in range(30)
                for type in ("alpha_seen", "beta_seen")
            ]
        )
        paths = {(row.source, row.target): row.ways for row in shop.analytics.paths().rows}
        assert paths == {("alpha_seen", "beta_seen"): 30, ("beta_seen", ""): 30}
        ends = ask(shop.engine, None, "SELECT first_type, last_type, count(*) AS n FROM sessions GROUP BY ALL")
        assert ends == [{"first_type": "alpha_seen", "last_type": "beta_seen", "n": 30}]
        first = ask(shop.engine, None, "SELECT DISTINCT type FROM daily_activity JOIN events ON id = first_event")
        assert first == [{"type": "alpha_seen"}]


def points_of(one: Recorded) -> int:
    points, type = one.event.properties.get("points"), one.event.type
    if one.event.source_type == "external" or isinstance(points, bool) or not isinstance(points, int):
        return 0
    if abs(points) > 10**12 or (points < 0 and type != "points_adjusted"):
        return 0
    return {"points_earned": points, "points_adjusted": points, "points_spent": -points, "points_expired": -points}.get(
        type, 0
    )


def test_points_facts_add_up_to_everybody_s_balance_and_daily_activity_to_what_was_earned() -> None:
    on = recorded(2, 120)
    facts = ask(on, None, "FROM points_facts")
    lines = {one.id: points_of(one) for events in by_person(on).values() for one in events if points_of(one)}
    assert {each["event"]: each["points"] for each in facts} == lines
    sums = {
        each["person"]: each["points"]
        for each in ask(on, None, "SELECT person, sum(points) points FROM points_facts GROUP BY 1")
    }
    for person in by_person(on):
        found = on.reader.person("default", person)
        view = on.reader.views(found, on.now(), names=["points"])["points"]
        assert sums.get(person, 0) == view["earned"] - view["spent"] + view["adjusted"] - view["expired"]
    expected: dict[tuple[str, str], list[Recorded]] = defaultdict(list)
    for person, events in by_person(on).items():
        for one in events:
            expected[(day_of(one.event.occurred_at), person)].append(one)
    rows = {(each["day"], each["person"]): each for each in ask(on, None, "FROM daily_activity")}
    assert set(rows) == {key for key, events in expected.items() if any(map(is_own, events))}
    for key, row in rows.items():
        own = [one for one in expected[key] if is_own(one)]
        earned = sum(points_of(one) for one in expected[key] if one.event.type == "points_earned")
        assert (row["events"], row["first_event"], row["points_earned"]) == (len(own), own[0].id, earned)


def test_sends_have_what_came_back_of_them_and_machines_and_forgeries_do_not_count() -> None:
    on = recorded(3, 150)
    events = [one for events in by_person(on).values() for one in events if one.event.source_type != "external"]
    mails = [one for one in events if one.event.type in ("mail_sent", "mail_skipped")]
    rows = {each["event"]: each for each in ask(on, None, "FROM sends")}
    assert set(rows) == {one.id for one in mails}
    for one in mails:
        answers = [each for each in events if each.event.properties.get("message") == one.event.properties["message"]]
        opens = [
            each.event.occurred_at
            for each in answers
            if each.event.type == "mail_opened" and not each.event.properties["machine"]
        ]
        row = rows[one.id]
        assert row["status"] == one.event.type.removeprefix("mail_")
        assert (row["opens"], row["opened_at"]) == (len(opens), format_time(min(opens)) if opens else None)
        assert (row["bounce"] == "permanent") == any(each.event.type == "mail_bounced" for each in answers)


def test_summaries_count_people_once_in_a_day_and_once_in_a_week() -> None:
    on = recorded(4)
    people = by_person(on)
    days, weeks, first = defaultdict(set), defaultdict(set), {}
    for person, events in people.items():
        for one in filter(is_own, events):
            day = date.fromisoformat(day_of(one.event.occurred_at))
            first.setdefault(person, day.isoformat())
            days[day.isoformat()].add(person)
            weeks[date.fromordinal(day.toordinal() - day.weekday()).isoformat()].add(person)
    found = ask(on, None, "FROM daily_summary")
    assert {each["day"]: each["people"] for each in found if each["people"]} == {
        day: len(who) for day, who in days.items()
    }
    for each in found:
        assert each["new_people"] == sum(day == each["day"] for day in first.values())
    found = ask(on, None, "FROM weekly_summary")
    assert {each["week"]: each["people"] for each in found if each["people"]} == {
        week: len(who) for week, who in weeks.items()
    }


def test_feature_vectors_are_the_views_at_the_end_of_each_day_with_events() -> None:
    on = recorded(5)
    columns = folds_of(on.catalogue).vectors.columns[2:]
    rows = {(each["person"], each["day"]): each for each in ask(on, None, "FROM feature_vectors")}
    expected = {
        (person, day_of(one.event.occurred_at))
        for person, events in by_person(on).items()
        for one in events
        if not is_forged(one)
    }
    assert set(rows) == expected
    for (person, day), row in rows.items():
        at = (date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal() + 1) * DAY
        view = on.reader.views(on.reader.person("default", person), at, names=["features"])["features"]
        for column in columns:
            value, shown = view[column.name[2:]]["value"], row[column.name]
            assert str(shown) == str(value) if column.kind == "text" else shown == value, column.name


def test_streak_snapshots_say_how_a_streak_stood_at_the_end_of_any_day() -> None:
    on = recorded(6)
    rows = ask(on, None, "FROM streak_snapshots")
    assert {each["streak"] for each in rows} == {"daily", "weekly"}
    last = staging.NOW // DAY + 30
    for person in by_person(on):
        for day in range(staging.NOW // DAY - 42, last):
            view = on.reader.views(on.reader.person("default", person), (day + 1) * DAY, names=["streaks"])["streaks"]
            text = day_of(day * DAY)
            for name, each in view.items():
                found = [
                    (row["current"], row["longest"], row["freezes"])
                    for row in rows
                    if (row["person"], row["streak"]) == (person, name)
                    and row["day"] <= text
                    and (row["until"] is None or text < row["until"])
                ]
                standing = (each["current"], each["longest"], each["freezes"])
                assert found == [standing] if each["longest"] else found == [], (person, name, text)


def test_content_is_counted_as_the_summary_of_interests_counts_it() -> None:
    on = recorded(7, 120)
    rows = ask(on, None, "FROM content_totals")
    actions: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for person, events in by_person(on).items():
        for one in events:
            if one.event.type == "product_viewed":
                category = one.event.properties["category"]
                for value in category if isinstance(category, list) else [str(category)]:
                    actions[(person, value, one.event.occurred_at // DAY)].append(one.event.occurred_at)
    totals: dict[tuple[str, str, str], int] = defaultdict(int)
    for (person, value, day), times in actions.items():
        totals[(person, value, day_of((day - day % 7) * DAY))] += min(2, len(times))
    shown = {(each["person"], each["value"], each["period"]): each["total"] for each in rows}
    assert shown == totals
    people = ask(on, None, "SELECT sum(total) AS total FROM content_effectiveness")[0]["total"]
    assert people == sum(totals.values())


@pytest.mark.parametrize("seed", range(int(os.environ.get("THREADLINE_TEST_CURATED_SEEDS", "1"))))
def test_whenever_the_lake_and_the_tables_were_written_every_table_is_that_of_the_log(
    seed: int, tmp_path: Path
) -> None:
    random, on, lake = Random(seed), engine(MemoryStore()), lake_in(tmp_path)
    events = happenings(random, 50)
    for step in range(5):
        record(on, events[step * 10 : step * 10 + 10])
        if step in (0, 2):
            sync(on, lake, limit=random.choice([7, None]))
        if step == 1:
            curate(on, lake, "default")
        if step == 3:
            compact(on, lake)
            who = next(iter(by_person(on)))
            on.erasures.run("default", on.erasures.begin("default", who).id)
    expected = tables(on, None)
    # Whoever is erased may have been the only one with some of it; in the first history others have all.
    filled = ("sessions", "streak_snapshots", "content_totals", "sends") if seed == 0 else ("sessions",)
    assert all(expected[f"FROM {name}"] for name in filled)
    assert tables(on, lake) == expected
    curate(on, lake, "default")
    record(on, happenings(random, 3))
    assert tables(on, lake) == tables(on, None)


def test_events_of_a_lake_of_version_1_belong_to_the_person_of_the_row_that_a_compaction_has_left(
    tmp_path: Path,
) -> None:
    on, lake = engine(MemoryStore()), lake_in(tmp_path)
    for name in ("ada", "bob"):
        record(on, [staging.event("page", {"user_id": name}, f"{name} {n}") for n in range(2)])
    sync(on, lake)
    on.identity.merge("default", "user_id:ada", "user_id:bob", reason="test", by="me", request="m", force=True)
    sync(on, lake)
    asked = "SELECT person, count(*) AS events FROM events WHERE type = 'page' GROUP BY person"
    assert len(ask(on, None, asked)) == 1
    assert ask(on, lake, asked) == ask(on, None, asked)
    compact(on, lake)
    assert ask(on, lake, asked) == ask(on, None, asked)
    (file,) = lake.files("default", IDENTITIES)
    table = read_table(lake, file)
    last = table.filter(pa.compute.equal(table["position"], pa.compute.max(table["position"])))
    alone = write_part(lake, Part("default", "", "", last), IDENTITIES, file.first, file.last)
    files = [alone if each == file else each for each in lake.manifest().files]
    lake.change(lambda manifest: replace(manifest, schema_version=1, files=files))
    assert ask(on, lake, asked) == ask(on, None, asked)
