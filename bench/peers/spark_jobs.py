"""Two jobs on one Spark session, turn by turn: ours, and one written by hand that does the same folds.

    python spark_jobs.py LAKE

The other job is what somebody writes who knows the folds and Spark's `applyInPandas`: the frame sorted, an event of
each row, a row of states for each person. It publishes nothing and checks nothing. It runs twice: with a group for each
person, as one writes it first, and with as many groups as ours. The faster one counts.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import functions as f

from threadline.app import catalogue_of
from threadline.exports.lake.lake import EVENTS, IDENTITIES, Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.spark import job
from threadline.exports.spark.recipe import recipe
from threadline.kernel.event import Event, Identifier, Recorded

ROUNDS = 2
_made: list[Any] = []
TIMES = ("occurred_at", "received_at", "recorded_at", "sent_time")


def by_hand(session: Any, lake: Lake, target: str, groups: int) -> None:
    """The job written by hand; 0 groups: one for each person."""
    files = lake.manifest().files
    read = {
        table: session.read.parquet(*(f"file://{lake.storage.url(each.name)}" for each in files if each.table == table))
        for table in (EVENTS, IDENTITIES)
    }
    owners = read[IDENTITIES].groupBy("thread").agg(f.max_by("person", "position").alias("owner"))
    events = read[EVENTS].join(owners, "thread")
    for name in TIMES:
        events = events.withColumn(name, f.unix_micros(name))
    schema = "person string, events long, states string"
    grouped = events.groupBy(f.pmod(f.xxhash64("owner"), f.lit(groups)) if groups else "owner")
    fold = fold_people if groups else fold_person
    grouped.applyInPandas(fold, schema).write.option("compression", "zstd").parquet(target)


def fold_people(frame: pd.DataFrame) -> pd.DataFrame:
    """Several people's events, folded."""
    return pd.concat([fold_person(own) for _, own in frame.groupby("owner")])


def fold_person(frame: pd.DataFrame) -> pd.DataFrame:
    """A person's events, folded."""
    if not _made:
        _made.append(catalogue_of(()))
    catalogue = _made[0]
    states = catalogue.empty()
    decode = msgspec.json.decode
    frame = frame.sort_values(["occurred_at", "id"])
    for row in frame.itertuples(index=False):
        event = Event(
            type=row.type,
            identifiers=decode(row.identifiers, type=tuple[Identifier, ...]),
            occurred_at=row.occurred_at,
            key=row.key,
            source=row.source,
            source_type=row.source_type,
            workspace=row.workspace,
            properties=decode(row.properties),
            context=decode(row.context),
            received_at=row.received_at,
            sent_time=None if pd.isna(row.sent_time) else int(row.sent_time),
            marks=tuple(row.marks),
            historical=row.historical,
            schema_version=row.schema_version,
            object_id=row.object_id,
            object_ref=row.object_ref,
            wire=decode(row.wire),
        )
        recorded = Recorded(event, row.id, row.thread, row.sequence, row.recorded_at, row.cause)
        for index, fold in catalogue.plan(event.type).steps:
            state = fold(states[index], recorded)
            if state is not None:
                states[index] = state
    by_name = {p.name: state for p, state in zip(catalogue.projections, states, strict=True)}
    text = msgspec.json.encode(by_name, order="sorted").decode()
    return pd.DataFrame([(frame["owner"].iloc[0], len(frame), text)], columns=["person", "events", "states"])


def main(folder: str) -> None:
    """Run both, and print the best of each in seconds."""
    cores = os.cpu_count() or 1
    session = job.open_session(f"local[{cores}]")
    session.sparkContext.setLogLevel("ERROR")
    lake, made = Lake(open_storage(folder)), recipe(catalogue_of)
    best: dict[str, float] = {}
    for warm in range(ROUNDS + 1):
        began = time.perf_counter()
        done = job.refold(session, lake, made)
        took = {"ours": time.perf_counter() - began}
        for name, groups in (("each", 0), ("grouped", max(1, done.events // job.EVENTS_PER_GROUP))):
            target = tempfile.mkdtemp()
            began = time.perf_counter()
            by_hand(session, lake, f"{target}/states", groups)
            took[name] = time.perf_counter() - began
            shutil.rmtree(target)
        if warm:
            best = {name: min(seconds, best.get(name, seconds)) for name, seconds in took.items()}
    best["theirs"] = min(best["each"], best["grouped"])
    print(json.dumps({**best, "people": done.people, "cores": cores, "rounds": ROUNDS}))


if __name__ == "__main__":
    main(sys.argv[1])
