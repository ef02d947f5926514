"""The job that erases what is past its time: everybody is looked at once a day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from threadline.capabilities.operate.retention.definition import Retention
from threadline.kernel.errors import LimitExceeded, StoreDamaged
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.ports import Ports
from threadline.kernel.time import DAY

JOB_KIND = "retention"
CHANGED, REFRESHING = "changed", "refreshing"
"""Phases of a day: people of whom something was erased were met, and then everybody's segments and leaderboards are
looked at again, which go by what people are and hear of it by events only."""
GAP_MAX = 2 * DAY
"""Between two looks. After a longer one the clock may have made a step, and nothing is erased until the next day."""
EXPIRING_PAGE = 100
"""People who are looked at together."""


def _step(rules: Sequence[Retention], engine: Ports, job: Job, limit: int) -> Step:
    phase, _, after = job.cursor.partition("/")
    if phase == REFRESHING:
        done = engine.maintenance.refresh(after, limit)
        return Step(f"{REFRESHING}/{done.next}") if done.next else _tomorrow(engine, job)
    now, expiry = engine.recorder.clock(), engine.erasures.expiry
    if now - job.changed_at > GAP_MAX:
        # Nothing brings back what a clock that is a year ahead would erase: whoever keeps it has a day to set it right.
        return Step(job.cursor, due_at=now + DAY)
    expiry.finish()
    people, following = engine.reader.people(None, after, min(limit, EXPIRING_PAGE))
    counts = Counter(people=len(people))
    for rule in rules:
        before = now - rule.days * DAY
        for person in expiry.expired(people, rule.types, before, 1):
            if phase != CHANGED:
                # Noted before anything is: after a kill nothing else would say that segments are to be looked at.
                return Step(f"{CHANGED}/{after}")
            try:
                counts[f"erased.{rule.name}"] += expiry.expire(person, rule.types, before)
            except (LimitExceeded, StoreDamaged):
                counts["left_out"] += 1  # one person must not keep the others' events
    if following:
        return Step(f"{phase}/{following}", counts)
    if phase != CHANGED:
        return _tomorrow(engine, job, counts)
    engine.store.purge()
    return Step(f"{REFRESHING}/", counts)


def _tomorrow(engine: Ports, job: Job, counts: Mapping[str, int] = MappingProxyType({})) -> Step:
    days = (engine.recorder.clock() - job.created_at) // DAY + 1
    return Step("", counts, due_at=job.created_at + days * DAY)


def retention_job(rules: Sequence[Retention]) -> JobKind:
    """The job of these rules."""
    return JobKind(JOB_KIND, partial(_step, tuple(rules)), standing=True)
