"""Counts are those that a second reckoner makes of the events: in any order, after a refold, by part and by range."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capabilities.feedback_stage import Stage
from threadline.capabilities.reach.feedback.counting import count
from threadline.capabilities.reach.feedback.events import SOURCE
from threadline.capabilities.reach.feedback.rows import TABLE, MailRow, event_rows
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.store import Batch, Delete, scan_pages
from threadline.kernel.time import SECOND, format_time

TYPES = ["sent", "skipped", "delivered", "delayed", "opened", "clicked", "bounced", "complained", "replied"]
ROWS = st.lists(
    st.builds(
        MailRow,
        type=st.sampled_from([f"mail_{each}" for each in TYPES]),
        at=st.integers(0, 200).map(lambda at: at * SECOND),
        thread=st.just("0" * 32),
        message=st.sampled_from("abcd"),
        template=st.sampled_from(["t", "u"]),
        step=st.sampled_from(["", "1"]),
        arm=st.sampled_from(["", "x"]),
        machine=st.booleans(),
        link=st.sampled_from(["", "l", "m", "n"]),
        bounce=st.sampled_from(["permanent", "transient"]),
        reason=st.sampled_from(["no_address", "frequency_cap"]),
    ),
    max_size=40,
)


def reckoned(rows: list[MailRow]) -> dict[str, dict[str, int]]:
    """The counts again, row by row against all others, without sets of what was seen."""
    found: dict[str, dict[str, int]] = {}
    for type in TYPES:
        of_type = [row for row in rows if row.type == f"mail_{type}"]
        machines = [row for row in of_type if by_machine(row, rows)]
        people = [row for row in of_type if not by_machine(row, rows)]
        found[type] = {
            "unique": len({row.message for row in people}),
            "total": len(people),
            "machine_unique": len({row.message for row in machines}),
            "machine_total": len(machines),
        }
    return found


def by_machine(row: MailRow, rows: list[MailRow]) -> bool:
    """Whether a row is an open or a click of a machine."""
    if row.type == "mail_opened":
        return row.machine
    if row.type != "mail_clicked":
        return False
    clicks = [each for each in rows if each.type == row.type and each.message == row.message]
    if row.machine or any(not each.link and abs(each.at - row.at) <= 60 * SECOND for each in clicks):
        return True
    starts = [each.at for each in clicks if row.at - 10 * SECOND <= each.at <= row.at]
    return any(len({each.link for each in clicks if start <= each.at <= start + 10 * SECOND}) >= 3 for start in starts)


def plain(counts: Any) -> dict[str, dict[str, int]]:
    """Counts as plain values."""
    names = ("unique", "total", "machine_unique", "machine_total")
    return {type: {name: getattr(getattr(counts, type), name) for name in names} for type in TYPES}


@given(ROWS, st.randoms(use_true_random=False))
def test_counts_of_rows_in_any_order_are_those_of_a_second_reckoner(rows, random):
    whole, parts, links = count(rows)
    assert plain(whole) == reckoned(rows)
    random.shuffle(rows)
    assert count(rows) == (whole, parts, links)
    for type, why, found in (("mail_bounced", "bounce", whole.bounces), ("mail_skipped", "reason", whole.skip_reasons)):
        of_type = [row for row in rows if row.type == type]
        assert found == {
            kind: len({row.message for row in of_type if getattr(row, why) == kind})
            for kind in sorted({getattr(row, why) for row in of_type})
        }


@given(ROWS)
def test_clicks_by_link_are_those_of_people_and_the_most_clicked_link_is_first(rows):
    clicks = [row for row in rows if row.type == "mail_clicked" and row.link and not by_machine(row, rows)]
    links = count(rows)[2]
    assert {each.link: (each.unique, each.total) for each in links} == {
        link: (
            len({row.message for row in clicks if row.link == link}),
            sum(row.link == link for row in clicks),
        )
        for link in {row.link for row in clicks}
    }
    assert [each.unique for each in links] == sorted((each.unique for each in links), reverse=True)


@given(ROWS)
def test_parts_have_the_totals_of_the_whole(rows):
    whole, parts, _ = count(rows)
    sums: dict[str, int] = defaultdict(int)
    for part in parts:
        assert (part.template, part.step, part.arm) in {(row.template, row.step, row.arm) for row in rows}
        for type, counts in plain(part.counts).items():
            sums[type] += counts["total"] + counts["machine_total"]
    assert (
        sums == {type: counts["total"] + counts["machine_total"] for type, counts in plain(whole).items()} or not rows
    )


NAMES = st.sampled_from(["welcome", "offer", "a/b", "ünï"])
HAPPENED = st.lists(
    st.tuples(
        st.sampled_from(TYPES),
        st.integers(0, 5),
        st.integers(0, 300),
        NAMES,
        st.sampled_from([None, "onboarding"]),
        st.booleans(),
        st.sampled_from(["", "l", "m"]),
    ),
    max_size=25,
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(HAPPENED, st.integers(0, 300), st.integers(0, 300))
def test_counters_of_the_store_are_reckoned_from_its_events_and_survive_a_refold(happened, start, stop):
    stage = Stage()
    events = []
    for number, (type, person, at, template, journey, machine, link) in enumerate(happened):
        about = {"template": template, "message": f"m{person}", "machine": machine, "link": link, "bounce": "transient"}
        about |= {"journey": journey} if journey else {"broadcast": "april"}
        events.append(
            Event(
                type=f"mail_{type}",
                identifiers=(Identifier("user_id", f"u{person}"),),
                occurred_at=stage.now - 600 * SECOND + at * SECOND,
                key=str(number),
                source_type="internal",
                # As earlier versions recorded them, before a click was decided about.
                source=SOURCE,
                properties={**about, "address": f"u{person}@example.com"},
            )
        )
    assert {each.status for each in stage.engine.recorder.record(events)} <= {"accepted"}
    base = stage.now - 600 * SECOND
    begin, end = sorted((base + start * SECOND, base + stop * SECOND))
    for subject, name in (("template", "a/b"), ("template", "ünï"), ("journey", "onboarding"), ("broadcast", "april")):
        mine = [each for each in events if each.properties.get(subject) == name]
        within = [each for each in mine if begin <= each.occurred_at < end]
        limits = {"start": format_time(begin), "stop": format_time(end)}
        for expected, chosen in ((mine, {}), (within, limits)):
            counts = stage.run("feedback_counters", **{subject: name}, **chosen).counts
            assert plain(counts) == reckoned([row_of(each) for each in expected])
            found = listed(stage, subject, name, chosen)
            assert sorted(found) == sorted((each.type, format_time(each.occurred_at)) for each in expected)
            assert [at for _, at in found] == sorted((at for _, at in found), reverse=True)
    before = [stage.run("feedback_counters", broadcast="april"), stage.run("feedback_counters", journey="onboarding")]
    refold(stage)
    assert before == [
        stage.run("feedback_counters", broadcast="april"),
        stage.run("feedback_counters", journey="onboarding"),
    ]
    assert stage.problems == []


def row_of(event: Event) -> MailRow:
    """What counts of an event."""
    get = event.properties.get
    return MailRow(event.type, event.occurred_at, "", get("message"), machine=get("machine"), link=get("link"))


def refold(stage: Stage) -> None:
    """Lose every row, and derive everything again from the log."""
    store = stage.engine.store
    for item in list(scan_pages(store, TABLE)):
        assert store.commit([Batch(writes=[Delete(item.key)])]) == [None]
    assert stage.run("feedback_counters", broadcast="april").counts.sent.total == 0
    refold_everybody(store, stage.engine.catalogue)
    assert refold_everybody(store, stage.engine.catalogue, write=False)[2:6] == ((), 0, (), ())


def listed(stage: Stage, subject: str, name: str, limits: dict[str, str]) -> list[tuple[str, str]]:
    """All events, page by page, each once."""
    found, cursor, ids = [], "", set()
    while True:
        page = stage.run("feedback_events", **{subject: name}, **limits, cursor=cursor, limit=3)
        for each in page.events:
            assert each.id not in ids
            ids.add(each.id)
            found.append((each.type, each.at))
        cursor = page.next
        if not cursor:
            return found


def test_events_name_the_person_of_today_and_are_filtered_by_type():
    stage = Stage()
    message = stage.mail(journey="onboarding", step="hello")
    (event,) = stage.run("feedback_events", journey="onboarding").events
    person = stage.engine.reader.person("default", "user_id:ada").id
    assert (event.type, event.person, event.message, event.step) == ("mail_sent", person, message, "hello")
    assert stage.run("feedback_events", template="welcome", type="mail_opened").events == []
    with pytest.raises(InvalidValue):
        stage.run("feedback_events", template="welcome", cursor="x")


FIELDS = st.sampled_from(
    ["message", "template", "journey", "broadcast", "step", "arm", "link", "address", "provider_id"]
)
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=300) | st.lists(st.integers())


@given(st.dictionaries(FIELDS, VALUES, max_size=9))
def test_rows_of_any_payload_can_be_written_and_read(properties):
    event = Event(
        type="mail_sent",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=1,
        key="k",
        source_type="internal",
        properties=properties,
    )
    recorded = Recorded(event, id="a" * 32, thread="b" * 32, sequence=1, recorded_at=1)
    for row in event_rows(recorded):
        assert row.value
        assert len(f"{row.table}{row.partition}{row.sort}".encode("utf-8", "surrogatepass")) <= 1_024
