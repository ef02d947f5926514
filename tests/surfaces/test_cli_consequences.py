"""What an import, an apply and a merge would send to those who are only noticed now: shown, and asked about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed
from threadline.app import open_dispatcher
from threadline.kernel.errors import Conflict
from threadline.kernel.limits import UNASKED_EFFECTS_MAX
from threadline.settings import Settings
from threadline.surfaces.importing import recording as importing

__all__ = ["call", "composed"]

MAIL = """
mail:
  senders: {shop: {from: n@shop.example}}
  templates: {hello: {subject: a, text: x}}
"""
DEFINITIONS = """
segments: {buyers: {when: {field: features.has_purchased, equals: true}}}
journeys:
  bought: {trigger: {segment: buyers}, existing: EXISTING, steps: [STEP]}
"""
PEOPLE = UNASKED_EFFECTS_MAX + 1
IMPORT = ("--type", "purchase_completed", "--time", "day", "--email", "mail", "--key", "order")
Call = Callable[..., Any]


def declared(*, existing: bool, step: str = "send: hello") -> str:
    return MAIL + DEFINITIONS.replace("EXISTING", str(existing).lower()).replace("STEP", f"{{{step}}}")


def orders(path: Path, name: str) -> str:
    rows = (f"{name}{number},{name}{number}@x.example,2025-03-01\n" for number in range(PEOPLE))
    path.write_text("order,mail,day\n" + "".join(rows))
    return str(path)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Path:
    """A folder with a store that has imported orders, without a segment or a journey."""
    (tmp_path / "threadline.yaml").write_text(MAIL)
    monkeypatch.setenv("THREADLINE_STORE", str(tmp_path / "x.db"))
    assert call("import", orders(tmp_path / "first.csv", "a"), *IMPORT).code == 0
    return tmp_path


def waiting(shop: Path) -> int:
    with threadline.open(shop / "x.db", readonly=True) as tl:
        return {queue.name: queue.waiting for queue in tl.effects.queues().queues}["mail"]


def test_apply_shows_entries_and_mails_and_sends_more_than_the_limit_only_after_a_yes(call: Call, shop: Path) -> None:
    (shop / "threadline.yaml").write_text(declared(existing=True))
    line = f"Causes: {PEOPLE} entries into segments, {PEOPLE} entries into journeys, {PEOPLE} mails, 0 webhooks."
    assert line in call("apply", "--dry-run").out
    refused = call("apply")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert waiting(shop) == 0
    assert json.loads(call("apply", "--dry-run", "--json").out)["causes"]["effects"] == {"mail": PEOPLE}
    assert call("apply", "--yes").code == 0
    assert waiting(shop) == PEOPLE


def test_a_journey_that_begins_with_a_wait_is_asked_about_too(call: Call, shop: Path) -> None:
    (shop / "threadline.yaml").write_text(declared(existing=True, step="wait: 1d}, {send: hello"))
    refused = call("apply")
    assert refused.code == 1
    assert f"{PEOPLE} steps that wait" in refused.err


def test_apply_asks_nothing_where_nothing_is_sent(call: Call, shop: Path) -> None:
    (shop / "threadline.yaml").write_text(declared(existing=False))
    applied = call("apply")
    assert applied.code == 0
    assert f"Causes: {PEOPLE} entries into segments, 0 mails, 0 webhooks." in applied.out
    assert waiting(shop) == 0


def test_a_job_that_would_send_more_than_the_limit_says_so_and_goes_on_only_with_a_yes(shop: Path) -> None:
    (shop / "threadline.yaml").write_text(declared(existing=True))
    with threadline.open(shop / "x.db", definitions=str(shop / "threadline.yaml")) as tl:
        dispatcher = open_dispatcher(tl.engine, Settings())
        for yes, problem, mails in ((False, f"send {PEOPLE:,} mails", 0), (True, "", PEOPLE)):
            job = tl.definitions.apply_in_background(yes=yes)
            while dispatcher.run_once():
                pass
            assert problem in tl.jobs.show(job.id).problem
            assert sum(each.waiting for each in tl.effects.queues().queues if each.name == "mail") == mails
        assert tl.jobs.show(job.id).state == "done"


def test_an_import_shows_and_asks_as_apply_does(call: Call, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop / "threadline.yaml").write_text(declared(existing=True))
    assert call("apply", "--yes").code == 0
    file = orders(shop / "second.csv", "b")
    line = f"{PEOPLE} entries into segments, {PEOPLE} entries into journeys, {PEOPLE} mails, 0 webhooks"
    assert line in call("import", file, *IMPORT, "--dry-run").out
    refused = call("import", file, *IMPORT)
    assert (refused.code, line in refused.err, waiting(shop)) == (1, True, PEOPLE)
    assert call("import", file, *IMPORT, "--yes").code == 0
    assert waiting(shop) == 2 * PEOPLE
    # Of a long file the beginning is rehearsed, and the answer says so.
    monkeypatch.setattr(importing, "FORETOLD_ROWS_MAX", 1)
    assert f"Caused by {PEOPLE} rows" in call("import", orders(shop / "third.csv", "c"), *IMPORT, "--dry-run").out


def test_an_import_that_sends_nothing_is_not_rehearsed(call: Call, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop / "threadline.yaml").write_text(declared(existing=False))
    monkeypatch.setattr(importing, "foretell_file", None)
    assert call("import", orders(shop / "second.csv", "b"), *IMPORT).code == 0
    assert waiting(shop) == 0


def test_the_dry_run_of_a_merge_shows_what_it_causes_and_changes_nothing(shop: Path) -> None:
    segments = "segments: {twice: {when: {field: features.monetary_total, greater_than: 8}}}"
    (shop / "threadline.yaml").write_text(segments)
    with threadline.open(shop / "x.db", definitions=str(shop / "threadline.yaml")) as tl:
        for who in ("ann", "bob"):
            tl.track(who, "purchase_completed", {"total": 5, "currency": "EUR"})
        before = tl.events.of("ann").events
        tried = tl.people.merge(id="ann", other="bob", dry_run=True)
        assert tried.causes.events == {"segment_entered": 1}
        assert tl.events.of("ann").events == before
        with pytest.raises(Conflict, match="already one person"):
            tl.people.merge(id="ann", other="ann", dry_run=True)
