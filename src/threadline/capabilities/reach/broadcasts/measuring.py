"""What came of a broadcast for its recipients: who opened, clicked, or had an event in the time after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.definition import Arm, Broadcast
from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED, broadcast_of, due_at
from threadline.capabilities.reach.broadcasts.projection import BROADCASTS, STATUS
from threadline.capabilities.reach.broadcasts.repository import Recipient
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.ports import Person, Ports
from threadline.kernel.time import parse_time

MEASURE_KIND = "broadcast_measure"
PEOPLE, GAINED = "people.", "gained."
"""Begin the names under which the people of an arm are counted: all, and those for whom the metric counts."""
_STATUS_OF = {"opens": "opened", "clicks": "clicked"}


def measured(
    engine: Ports, workspace: str, id: str, recipients: Sequence[Recipient], metric: str, event: str, within: int
) -> Counter[str]:
    """By arm, how many of a page of recipients there are and for how many a metric counts: opens, clicks, or the first
    event of a type within some time after the mail was due for them, or would have been."""
    if metric == "conversions":
        with_it = frozenset(_converted(engine, workspace, id, recipients, event, within))
    else:
        rows = repository.rows_of(engine.store, STATUS, workspace, id, [recipient.person for recipient in recipients])
        split = (row.key.sort.partition("/") for row in rows)
        with_it = frozenset(thread for thread, _, status in split if status == _STATUS_OF[metric])
    counts = Counter(f"{PEOPLE}{recipient.arm}" for recipient in recipients)
    counts.update(f"{GAINED}{recipient.arm}" for recipient in recipients if recipient.person in with_it)
    return counts


def winner_of(broadcast: Broadcast, counts: Mapping[str, int]) -> str:
    """The arm with the best rate among those tested; of equals the first that is declared."""

    def rate(arm: Arm) -> float:
        return counts.get(f"{GAINED}{arm.name}", 0) / max(counts.get(f"{PEOPLE}{arm.name}", 0), 1)

    return max(broadcast.arms, key=rate).name


def _converted(
    engine: Ports, workspace: str, id: str, recipients: Sequence[Recipient], event: str, within: int
) -> Iterator[str]:
    now = engine.recorder.now()
    for person_id, person in engine.reader.people_of(workspace, [recipient.person for recipient in recipients]).items():
        addressed = engine.reader.as_of(person, now).view(BROADCASTS.name).get(id)
        if addressed is not None:
            start = _due(engine, person, id, parse_time(addressed["addressed_at"]))
            types = frozenset({event})
            if engine.reader.events(person, start=start, stop=start + within, types=types, limit=1):
                yield person_id


def _due(engine: Ports, person: Person, id: str, addressed_at: int) -> int:
    types = frozenset({BROADCAST_ADDRESSED})
    addressed = engine.reader.events(person, start=addressed_at, stop=addressed_at + 1, types=types)
    dues = [due_at(recorded.event) for recorded in addressed if broadcast_of(recorded) == id]
    return max(addressed_at, *dues)


def _step(engine: Ports, job: Job, limit: int) -> Step:
    id: str = job.params["broadcast"]
    page = list(islice(repository.recipients(engine.store, job.workspace, id, job.cursor, limit), limit))
    addressed = [recipient for recipient in page if recipient.arm]
    counts = measured(engine, job.workspace, id, addressed, "conversions", job.params["event"], job.params["within"])
    counts["done"] = len(page)
    finished = len(page) < limit
    return Step("" if finished else page[-1].person, counts, finished=finished)


KIND = JobKind(MEASURE_KIND, _step)
