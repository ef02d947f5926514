"""The job that publishes features: once a day everybody who was active lately is compared with what was published."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from threadline.capabilities.profile.feature_updates.definition import FeatureUpdates
from threadline.capabilities.profile.feature_updates.events import FEATURES_CHANGED, SOURCE
from threadline.capabilities.profile.feature_updates.projection import PROJECTION
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.event import Event, marks_of
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.ports import Person, Ports
from threadline.kernel.time import DAY, format_time, parse_time
from threadline.kernel.why import TIME

JOB_KIND = "feature_updates"
PAGE = 100
"""People who are looked at together."""
_PEOPLE = "people/"
"""What a cursor begins with; the person follows after whom it goes on. Empty: the first day is still to come."""
_FEATURES, _ACTIVITY = "features", "activity"


def feature_updates_job(updates: FeatureUpdates) -> JobKind:
    """The job. A day that was missed, because nothing ran, is made up for once, with the values of the day it runs."""
    return JobKind(JOB_KIND, partial(_step, updates), standing=True)


def _step(updates: FeatureUpdates, engine: Ports, job: Job, limit: int) -> Step:
    if not job.cursor:
        return Step(_PEOPLE, due_at=next_time(updates.at, engine.recorder.clock()))
    now = engine.recorder.now()
    people, following = engine.reader.people(None, job.cursor.removeprefix(_PEOPLE), min(limit, PAGE))
    counts, events = Counter(people=len(people)), []
    for person in people:
        try:
            changed = _changed(updates, engine, person, now)
        except StoreDamaged:
            counts["left_out"] += 1  # one damaged person must not keep the others' features from being published
            continue
        if changed:
            events.append(_event(person, changed, now))
    counts["published"] = len(events)
    if following:
        return Step(_PEOPLE + following, counts, events)
    return Step(_PEOPLE, counts, events, due_at=next_time(updates.at, engine.recorder.clock()))


def _changed(updates: FeatureUpdates, engine: Ports, person: Person, now: int) -> dict[str, Any]:
    """The values that differ from those published last, of somebody who was active; of what was never published only
    what there is."""
    last_seen = (engine.reader.views(person, now, names=(_ACTIVITY,))[_ACTIVITY] or {}).get("last_seen_at")
    if last_seen is None or now - parse_time(last_seen) > updates.active_within:
        return {}
    views = engine.reader.views(person, now, names=(_FEATURES, PROJECTION))
    vector, published = views[_FEATURES], views[PROJECTION]["features"]
    names = updates.features or sorted(vector)
    return {
        name: vector[name]["value"]
        for name in names
        if (vector[name]["value"] != published[name] if name in published else vector[name]["status"] != "NOT_FOUND")
    }


def _event(person: Person, changed: dict[str, Any], now: int) -> Event:
    # A page that is done again after a kill finds published what it has published, so the instant is key enough.
    return Event(
        type=FEATURES_CHANGED,
        identifiers=(person.identifiers[person.id],),
        occurred_at=now,
        key=f"{person.id}/{now}",
        source=SOURCE,
        source_type="internal",
        workspace=person.workspace,
        properties={"features": changed, "as_of": format_time(now)},
        marks=marks_of(TIME),
    )


def next_time(time_of_day: int, at: int) -> int:
    """The next instant after ``at`` that has this time of the day in UTC."""
    return ((at - time_of_day) // DAY + 1) * DAY + time_of_day
