"""Training sets from a lake are those of the store: whoever was joined, parted, late or imported by then."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import threadline
from tests.exports.spark import session
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.exports.training.historical import Asked, Training
from threadline.features import get_historical_features, get_online_features
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.surfaces.python.embedded import Threadline
from threadline.testing.world import STARTS_AT, World

DEFINITIONS = """
features:
  last_channel: {aggregate: last, events: conversation_started, of: channel}
  refunded: {aggregate: any, events: purchase_refunded}
timezone: Europe/Rome
"""


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = STARTS_AT

    def __call__(self) -> int:
        return self.now


def bought(key: str, user: str, total: float) -> dict[str, Any]:
    return {"type": "purchase_completed", "key": key, "identifiers": {"user_id": user}, "properties": {"total": total}}


def opened(folder: Path, clock: Clock) -> Threadline:
    (folder / "threadline.yaml").write_text(DEFINITIONS)
    return threadline.open(folder / "shop.db", clock=clock)


def trained(store: Threadline, folder: Path, labels: list[tuple[str, int]], known: Any = "then") -> None:
    """Check that a training set from the lake is the operation's, with exactly what both say."""
    sync(store.engine, Lake(open_storage(str(folder / "lake"))))
    asked = [{"person": person, "at": format_time(at), "label": place} for place, (person, at) in enumerate(labels)]
    expected = store.features.training_set(labels=asked, known=known)
    entities = {
        "person": [person for person, _ in labels],
        "event_timestamp": pa.array([at for _, at in labels], pa.timestamp("us", "UTC")),
        "label": list(range(len(labels))),
    }
    job = get_historical_features(entities, lake=folder / "lake", definitions=folder / "threadline.yaml", known=known)
    found = job.to_arrow(statuses=True)
    assert found.select(["person", "event_timestamp", "label"]) == pa.table(entities)
    for name in expected.columns:
        values = [row.values[name] for row in expected.rows]
        assert found[name].to_pylist() == values, name
        assert found[f"{name}__status"].to_pylist() == [row.statuses[name] for row in expected.rows], name
    file = folder / "set.parquet"
    job.to_parquet(file, statuses=True)
    written = pa.parquet.read_table(file)
    assert written.column_names == found.column_names
    assert written.to_pylist() == found.to_pylist()


def test_a_world_with_late_events_and_sign_ins_trains_alike_from_store_and_lake(tmp_path: Path, seed: int) -> None:
    clock = Clock()
    world = World(seed, people=12, history=300, days=20, late=0.2, late_days_max=5, duplicates=0.05)
    draw = random.Random(seed)
    with opened(tmp_path, clock) as store:
        for batch in world.batches(300, 10):
            clock.now = batch[-1].received_at
            store.record(batch)
        clock.now += DAY
        names = sorted({str(each) for batch in world.batches(300, 50) for event in batch for each in event.identifiers})
        names += [person.id for person in store.engine.reader.all_people("default")] + ["nobody", "0" * 32, "email:"]
        labels = [(draw.choice(names), draw.randrange(STARTS_AT - HOUR, clock.now)) for _ in range(40)]
        trained(store, tmp_path, labels)
        trained(store, tmp_path, labels, known="now")


def test_people_joined_parted_and_imported_are_who_they_were_at_each_instant(tmp_path: Path) -> None:
    clock = Clock()

    def buy(key: str, total: float, **fields: Any) -> None:
        made = {"type": "purchase_completed", "key": key, "properties": {"total": total, "currency": "EUR"}} | fields
        assert store.record([made])[0].status == "accepted"

    with opened(tmp_path, clock) as store:
        buy("1", 10, identifiers={"anonymous_id": "a"})
        buy("2", 5, identifiers={"user_id": "ada"})
        clock.now += DAY
        store.record([{"type": "identify", "key": "3", "identifiers": {"user_id": "ada", "anonymous_id": "a"}}])
        clock.now += DAY
        buy("4", 1, identifiers={"anonymous_id": "a"})
        clock.now += DAY
        store.people.split("user_id:ada", identifiers=["anonymous_id:a"])
        clock.now += DAY
        buy("5", 2, identifiers={"user_id": "ada", "email": "ada@example.com"})
        buy(
            "6",
            3,
            identifiers={"user_id": "bob", "email": "bob@example.com"},
            historical=True,
            occurred_at=format_time(STARTS_AT - DAY),
        )
        clock.now += DAY
        whom = ["ada", "anonymous_id:a", "email:ada@example.com", "bob", "email:bob@example.com"]
        whom += [person.id for person in store.engine.reader.all_people("default")]
        times = [STARTS_AT + hours * HOUR for hours in range(-30, 5 * 24, 6)] + [
            STARTS_AT + day * DAY for day in range(5)
        ]
        trained(store, tmp_path, [(who, at) for who in whom for at in times])


@pytest.mark.slow
def test_spark_makes_the_rows_that_duckdb_makes(tmp_path: Path, seed: int) -> None:
    session.need()
    clock = Clock()
    world = World(seed, people=12, history=300, days=20, late=0.2, late_days_max=5)
    draw = random.Random(seed)
    lake = Lake(open_storage(str(tmp_path / "lake")))
    with opened(tmp_path, clock) as store:
        for batch in world.batches(300, 50):
            clock.now = batch[-1].received_at
            store.record(batch)
        sync(store.engine, lake)
        whom = sorted({str(each) for event in world.events(300) for each in event.identifiers})
        asked = Asked([draw.choice(whom) for _ in range(50)], [draw.randrange(STARTS_AT, clock.now) for _ in range(50)])
        catalogue = store.engine.catalogue
    (tmp_path / "asked.json").write_text(json.dumps([asked.refs, asked.ats]))
    arguments = ["lake", "threadline.yaml", "asked.json", "out.json"]
    driver = Path(__file__).with_name("driver.py")
    session.run(driver, *(str(tmp_path / each) for each in arguments), timeout_seconds=600)
    with Training(catalogue, lake, "default").vectors(asked) as (_, file):
        expected = pa.parquet.read_table(file).sort_by("place").to_pylist()
    found = json.loads((tmp_path / "out.json").read_text())
    assert sorted(found, key=lambda row: row["place"]) == expected
    assert any(row["monetary_total"] for row in expected)


def test_a_person_who_was_erased_is_nobody_in_a_training_set(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as store:
        for who in ("ada", "bob"):
            store.record([bought(who, who, 2)])
        sync(store.engine, Lake(open_storage(str(tmp_path / "lake"))))
        erasures = store.engine.erasures
        store.people.erase("user_id:ada")
        while unfinished := erasures.unfinished():
            erasures.advance(*unfinished[0])
        clock.now += DAY
        sync(store.engine, Lake(open_storage(str(tmp_path / "lake"))))
        sync(store.engine, Lake(open_storage(str(tmp_path / "lake"))))
        trained(store, tmp_path, [("ada", clock.now), ("bob", clock.now)])


def test_what_cannot_be_asked_is_said_before_anything_is_read(tmp_path: Path) -> None:
    rows = [{"person": "ada", "event_timestamp": "2020-01-01"}]
    with pytest.raises(InvalidSetting, match="read from a lake"):
        get_historical_features(rows)
    with pytest.raises(NotFound, match="no feature 'x'"):
        get_historical_features(rows, ["x"], lake=tmp_path)
    with pytest.raises(InvalidValue, match="no column 'person'"):
        get_historical_features([{"who": "ada"}], lake=tmp_path)
    with pytest.raises(InvalidValue, match=r"row 0.*in the future"):
        get_historical_features([{"person": "ada", "event_timestamp": "2999-01-01"}], lake=tmp_path)
    with pytest.raises(InvalidValue, match="names of features: monetary_total"):
        get_historical_features([{**rows[0], "monetary_total": 1}], lake=tmp_path)
    found = get_historical_features(rows, ["shop:monetary_total"], lake=tmp_path).to_arrow()
    assert found.to_pylist() == [{**rows[0], "monetary_total": None}]


def test_online_features_are_the_present_ones_and_null_for_nobody(tmp_path: Path) -> None:
    with opened(tmp_path, Clock()) as store:
        store.record([bought("1", "ada", 2)])
        rows = [{"person": "ada"}, {"person": "nobody"}]
        found = get_online_features(store, ["shop:monetary_total", "has_purchased"], rows)
    assert found == {"person": ["ada", "nobody"], "monetary_total": [2.0, None], "has_purchased": [True, None]}
