"""Law: while an index is being filled, no answer takes half of it for the whole, and nothing is decided by it for good.

Readers are found by what they ask of the store, not by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.capabilities.asked import Asked
from tests.capabilities.segments_stage import bought, redefined
from threadline.capabilities.foundation.jobs import filling
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.engine.context import Context
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.maintenance.marks import MARKS
from threadline.exports.lake.folder import FolderStorage
from threadline.kernel.errors import Conflict, ThreadlineError
from threadline.kernel.operation import Operation
from threadline.kernel.store import Batch, Delete, Key, Put
from threadline.kernel.time import DAY, SECOND
from threadline.surfaces.operation_calls import call, stale_note

PEOPLE = 24
BEFORE = """
mail: {senders: {shop: {from: shop@shop.example}}, templates: {offer: {subject: Offer, text: Hello}}}
segments: {early: {when: {field: features.monetary_total, greater_than: 10}}}
leaderboards: {visits: {score: features.monetary_gross_total}}
"""
AFTER = """
mail: {senders: {shop: {from: shop@shop.example}}, templates: {offer: {subject: Offer, text: Hello}}}
features: {spent: {aggregate: sum, events: purchase_completed, of: total}}
segments:
  early: {when: {field: features.monetary_total, greater_than: 10}}
  big: {when: {field: features.spent, greater_than: 50}}
leaderboards:
  visits: {score: features.monetary_gross_total}
  spenders: {score: features.spent, segments: [big]}
"""
IN_BIG = '{"field": "segments.big.since", "exists": true}'
VALUES: dict[str, tuple[Any, ...]] = {
    "name": ("big", "spenders", "spent"),
    "id": ("user_id:p3", "user_id:p20", "user_id:p21"),
    "segment": ("big",),
    "tag": ("vip",),
    "scope": ("segment=big",),
    "feature": ("spent",),
    "baseline_segment": ("big",),
    "when": (IN_BIG,),
    "around": (2,),
    "limit": (5,),
}
"""Values to try for parameters, by their names."""
NEWS = {"being_filled", "as_of", "changes_at", "computed_at", "events", "position"}
OF_THE_LOG = {
    "events_of": "says what was recorded, and a membership that is not yet recorded is not there",
    "events_feed": "likewise",
    "decisions_verify": "reads the log, and its cursor is a position there, which moves by itself on DynamoDB",
    "person": "shows the events, and views made of them",
    "definitions_changes": "says itself what is not filled",
    "definitions_foretell": "says what filling it would cause, of those who were not looked at",
    "doctor": "likewise",
}
OF_ONE_PERSON = {"segments_why": "belonging is computed when it is asked, of this one person"}


def stage() -> Asked:
    """People with a purchase each, and definitions of before."""
    asked = Asked(definitions=BEFORE)
    for number in range(PEOPLE):
        asked.tell("identify", user_id=f"p{number}", properties={"email": f"p{number}@shop.example"})
        asked.tell("tag_added", user_id=f"p{number}", properties={"tag": "vip"})
        bought(asked, f"p{number}", 40 + 2 * number)
    return asked


def half_filled(asked: Asked, step: str = "segments", limit: int = 7) -> Asked:
    """The same store under the new definitions, where the fill has come into the midst of a step."""
    now = redefined(asked, AFTER)
    cursor, done = "", ""
    while done != step:
        page = now.engine.maintenance.advance(cursor, limit)
        cursor, done = page.next, page.step
    assert cursor.startswith(step), "it is not in the midst of it"
    return now


def fill(asked: Asked) -> None:
    cursor = asked.engine.maintenance.advance("", 100).next
    while cursor:
        cursor = asked.engine.maintenance.advance(cursor, 100).next
    assert asked.engine.maintenance.stale() == ()


def calls(operation: Operation) -> Iterator[dict[str, Any]]:
    """Parameters that an operation takes: one of its values for each name, and few names at a time."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(operation.params)}
    needed = [name for name, field in fields.items() if field.required]
    if any(name not in VALUES for name in needed):
        return
    others = [name for name in fields if name in VALUES and name not in needed]
    for more in (set(each) for count in range(3) for each in combinations(others, count)):
        given: list[dict[str, Any]] = [{}]
        for name in [*needed, *sorted(more)]:
            given = [{**one, name: value} for one in given for value in VALUES[name]]
        yield from given


def answer(asked: Asked, operation: Operation, given: dict[str, Any]) -> tuple[Any, str]:
    """What an operation says, and the note beside it; a refusal is what it says."""
    context = Context(asked.engine, "default", asked.now, "shop")
    try:
        note = stale_note(operation, context, msgspec.convert(given, operation.params)) if operation.relies_on else ""
        return without(msgspec.to_builtins(call(operation, context, given, strict=True))), note
    except ThreadlineError as error:
        return {"refused": type(error).__name__}, note or (str(error) if isinstance(error, Conflict) else "")


def without(value: Any) -> Any:
    """An answer without what says when it is from."""
    if isinstance(value, dict):
        return {name: without(inner) for name, inner in value.items() if name not in NEWS}
    return [without(inner) for inner in value] if isinstance(value, list) else value


def tables(asked: Asked) -> set[str]:
    """The tables whose rows a refresh writes for everybody."""
    refreshed = {refresh.name for refresh in asked.engine.catalogue.refreshes}
    return {t for p in asked.engine.catalogue.projections if p.name in refreshed for t in p.index.tables}


def watched(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of tables that are read from now on."""
    read: set[str] = set()
    for name in ("query", "scan"):
        asks: Callable[..., Any] = getattr(asked.engine.store, name)

        def noted(table: str, *args: Any, asks: Callable[..., Any] = asks, **options: Any) -> Any:
            read.add(table)
            return asks(table, *args, **options)

        monkeypatch.setattr(asked.engine.store, name, noted)
    return read


def test_answer_of_half_an_index_equals_the_whole_or_says_that_it_is_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    half, full = half_filled(stage()), redefined(stage(), AFTER)
    fill(full)
    read, rows, readers = watched(half, monkeypatch), tables(half), set[str]()
    assert rows == {"segment", "board"}
    for operation in half.engine.catalogue.operations:
        if operation.method != "GET" or operation.media_type:
            continue
        for given in calls(operation):
            read.clear()
            now, note = answer(half, operation, given)
            of_rows = bool(read & rows)
            then, _ = answer(full, operation, given)
            if of_rows or note:
                readers.add(operation.name)
            is_asked = bool({"segment", "baseline_segment"} & given.keys()) and operation.name not in OF_ONE_PERSON
            assert note or not is_asked, (operation.name, given)
            assert now == then or note or operation.name in OF_THE_LOG, (operation.name, given)
    assert readers >= {"segments_members", "segments_sizes", "segments_leaving", "people_list", "leaderboards_top"}


def test_note_beside_an_answer_says_which_segment_and_how_far_and_none_of_what_has_not_changed() -> None:
    half = half_filled(stage())
    noted = {name: answer(half, half.operations["segments_members"], {"name": name})[1] for name in ("early", "big")}
    assert noted["early"] == ""
    assert noted["big"].startswith("segments.big: ")
    assert "% of everybody looked at" in noted["big"]
    (size,) = half.ask("segments_sizes", name="big")["segments"]
    assert (size["exact"], size["being_filled"]) == (False, noted["big"].partition(";")[0])
    (size,) = half.ask("segments_sizes", name="early")["segments"]
    assert (size["exact"], size["being_filled"], size["members"]) == (True, "", PEOPLE)
    fill(half)
    (size,) = half.ask("segments_sizes", name="big")["segments"]
    assert (size["exact"], size["being_filled"], size["members"]) == (True, "", 18)


def work(asked: Asked, rounds: int = 60) -> None:
    dispatcher = Dispatcher(asked.engine, {}, "test")
    for _ in range(rounds):
        dispatcher.run_once()
        asked.now += filling.FILLING_SECONDS * SECOND


def test_job_begun_while_an_index_is_half_filled_does_not_read_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Jobs are begun by whatever operation answers with one; only those that fill an index read it."""
    begun = set[str]()
    for name, operation in half_filled(stage()).operations.items():
        if operation.method != "POST" or operation.result is not JobView:
            continue
        for given in calls(operation):
            half = half_filled(stage())
            half.engine.exports = lambda: FolderStorage(tmp_path)
            fillers = {"definitions_apply", *(f"{refresh.name}_refresh" for refresh in half.engine.catalogue.refreshes)}
            try:
                kind = half.ask(name, **given)["kind"]
            except ThreadlineError:
                continue  # such as a job that is not there to be resumed
            begun.add(kind)
            read = watched(half, monkeypatch)
            work(half, 3)
            assert kind in fillers or not read & tables(half), (name, given)
    assert begun >= {"export", "definitions_apply", "segments_refresh", "leaderboards_refresh"}


AUDIENCES = [{"segment": "big"}, {"when": {"field": "segments.big.since", "exists": True}}]


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("step", ["people", "segments"])
def test_broadcast_to_a_segment_waits_until_it_is_filled_and_then_reaches_everybody(
    audience: dict[str, Any], step: str
) -> None:
    half = half_filled(stage(), step)
    half.ask("broadcasts_create", id="sale", template="offer", audience=audience)
    assert "segments.big" in half.ask("broadcasts_preview", id="sale")["being_filled"]
    half.ask("broadcasts_start", id="sale")
    work(half, 5)
    shown = half.ask("broadcasts_show", id="sale")
    assert (shown["state"], shown["audience"], shown["addressed"]) == ("resolving", 0, {})
    assert "segments.big" in shown["waits_for"]
    assert half.ask("broadcasts_pause", id="sale")["waits_for"] == "", "it waits for somebody to resume it"
    half.ask("broadcasts_resume", id="sale")
    fill(half)
    work(half)
    shown = half.ask("broadcasts_show", id="sale")
    assert (shown["state"], shown["audience"], shown["waits_for"]) == ("done", 18, "")
    assert sum(shown["addressed"].values()) == 18


def exported(asked: Asked, folder: Path) -> Any:
    asked.engine.exports = lambda: FolderStorage(folder)
    return asked.ask("exports_start", segment="big")["id"]


def test_export_of_a_segment_waits_until_it_is_filled_and_then_has_everybody(tmp_path: Path) -> None:
    half = half_filled(stage())
    id = exported(half, tmp_path)
    work(half, 5)
    job = half.ask("jobs_show", id=id)
    assert (job["state"], job["counts"], list(tmp_path.rglob("*.gz"))) == ("running", {}, [])
    assert job["waits_for"].startswith("segments.big")
    fill(half)
    work(half)
    job = half.ask("jobs_show", id=id)
    assert (job["state"], job["counts"]["people"], job["waits_for"]) == ("done", 18, "")


def test_board_among_a_segment_is_refused_until_the_segment_is_filled_too() -> None:
    half = half_filled(stage())
    assert len(half.ask("leaderboards_top", name="spenders", limit=100)["places"]) == PEOPLE
    with pytest.raises(Conflict, match=r"segments\.big: "):
        half.ask("leaderboards_top", name="spenders", scope="segment=big")
    fill(half)
    assert len(half.ask("leaderboards_top", name="spenders", scope="segment=big", limit=100)["places"]) == 18


REDEFINED = AFTER.replace("of: total}", "of: total, where: {currency: EUR}}").replace("than: 50", "than: 70")


def test_broadcast_whose_segment_is_redefined_while_it_is_resolved_is_resolved_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", 5)
    first = redefined(stage(), AFTER)
    fill(first)
    first.ask("broadcasts_create", id="sale", template="offer", audience={"segment": "big"})
    first.ask("broadcasts_start", id="sale")
    dispatcher = Dispatcher(first.engine, {}, "test")
    for _ in range(2):
        dispatcher.run_once()
    assert 0 < first.ask("broadcasts_show", id="sale")["audience"] < 18
    second = redefined(first, REDEFINED)
    work(second, 3)
    assert "segments.big" in second.ask("broadcasts_show", id="sale")["waits_for"]
    fill(second)
    work(second)
    shown = second.ask("broadcasts_show", id="sale")
    assert (shown["state"], shown["audience"], sum(shown["addressed"].values())) == ("done", 8, 8)
    assert len(second.ask("broadcasts_recipients", id="sale", limit=100)["recipients"]) == 8


def test_export_whose_segment_is_redefined_meanwhile_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", 5)
    first = redefined(stage(), AFTER)
    fill(first)
    id = exported(first, tmp_path)
    dispatcher = Dispatcher(first.engine, {}, "test")
    dispatcher.run_once()
    assert 0 < first.ask("jobs_show", id=id)["counts"]["people"] < 18
    second = redefined(first, REDEFINED)
    second.engine.exports = lambda: FolderStorage(tmp_path)
    work(second, 3)
    fill(second)
    work(second)
    assert second.ask("jobs_show", id=id)["counts"]["people"] == 8
    (manifest,) = tmp_path.rglob("manifest.json")
    lines = [file["lines"] for file in json.loads(manifest.read_bytes())["files"] if file["name"].startswith("people")]
    assert sum(lines) == 8


def test_segment_whose_feature_is_redefined_is_filled_again() -> None:
    """The conditions are the same, and the people are others."""
    before = redefined(stage(), AFTER)
    fill(before)
    after = redefined(before, AFTER.replace("of: total}", "of: total, window: 30d}"))
    assert set(after.engine.maintenance.stale()) == {"people", "segments", "leaderboards"}
    assert after.ask("segments_sizes", name="early")["segments"][0]["exact"], "it reads another feature"
    assert not after.ask("segments_sizes", name="big")["segments"][0]["exact"]
    after.now += 40 * DAY
    fill(after)
    (size,) = after.ask("segments_sizes", name="big")["segments"]
    assert (size["exact"], size["members"]) == (True, 0)


def test_store_of_an_earlier_version_whose_segments_and_boards_are_filled_opens_as_filled() -> None:
    """Its marks say the definitions of all segments together, and no more; those of boards may have been taken back."""
    earlier = redefined(stage(), AFTER)
    fill(earlier)
    catalogue = earlier.engine.catalogue
    (segments,) = (refresh for refresh in catalogue.refreshes if refresh.name == "segments")
    for boards in (b"-", None):
        old = [Put(Key(MARKS, "all segments"), segments.fingerprint.encode())]
        mark = Key(MARKS, "all leaderboards")
        earlier.engine.store.commit([Batch(writes=[*old, Delete(mark) if boards is None else Put(mark, boards)])])
        assert redefined(earlier, AFTER).engine.maintenance.stale() == ()


def test_segment_that_was_out_of_force_for_a_while_is_not_filled_when_it_is_declared_again() -> None:
    first = redefined(stage(), AFTER)
    fill(first)
    other = redefined(first, BEFORE)
    bought(other, "p0", 100)
    again = redefined(other, AFTER)
    assert not again.ask("segments_sizes", name="big")["segments"][0]["exact"]
    assert again.ask("segments_sizes", name="early")["segments"][0]["exact"]


def test_job_that_refreshes_segments_leaves_them_filled() -> None:
    half = half_filled(stage())
    half.ask("segments_refresh")
    work(half)
    assert half.ask("segments_sizes", name="big")["segments"][0]["exact"]
