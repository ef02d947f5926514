"""A store of 26e780d4: who was known is still known, who was suppressed gets no mail, and two forms are joined."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.asked import Asked
from tests.laws import staging
from threadline.app import composition
from threadline.engine.engine import Engine
from threadline.engine.maintenance.identifier_forms import join_forms, two_forms
from threadline.engine.maintenance.rebuild import refold_everybody, refold_shard
from threadline.kernel.errors import NotFound
from threadline.kernel.identity import MERGED
from threadline.kernel.time import parse_time
from threadline.stores.sqlite.store import SqliteStore
from threadline.surfaces.cli.program import run

STORE = Path(__file__).parents[1] / "data" / "stores" / "former_forms.db.gz"
DEFINITIONS = "consent: {topics: {news: {title: News, default: opted_in}}}"


def unpacked(path: Path) -> Path:
    with gzip.open(STORE) as packed, path.open("wb") as target:
        shutil.copyfileobj(packed, target)
    return path


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    """Operations on a copy of the store, some days after it was written."""
    asked = Asked(definitions=DEFINITIONS)
    asked.now = parse_time("2026-12-01T00:00:00Z")
    asked.engine = Engine(SqliteStore(unpacked(tmp_path / "old.db")), asked.engine.catalogue, lambda: asked.now)
    yield asked
    asked.engine.close()


def known(asked: Asked, ref: str) -> Any:
    return asked.ask("person", id=ref)["identifiers"]


@pytest.mark.parametrize(
    "ref", ["email:a\u0300nn@nowhere.example", "email:nobody@bücher.example", "phone:07700 900000", "email:other"]
)
def test_whoever_was_unknown_stays_unknown(asked: Asked, ref: str) -> None:
    with pytest.raises(NotFound):
        asked.ask("person", id=ref)


@pytest.mark.parametrize(
    "ref",
    [
        "email:ju\u0308rgen@x.example",
        "email:jürgen@x.example",
        "email:JÜRGEN@x.example",
        "phone:07700 900123",
        "phone:07700900123",
        "phone:+44 (0)20 7946 0018",
        "email:no",
        "email:No",
        "email:rita@bücher.example",
        "email:rita@xn--bcher-kva.example",
        "email:zoë@x.example",
    ],
)
def test_whoever_was_known_by_a_former_form_is_found(asked: Asked, ref: str) -> None:
    assert known(asked, ref)


@pytest.mark.parametrize("text", ["ju\u0308rgen@x.example", "jürgen@x.example", "rita@BÜCHER.example"])
def test_a_new_event_is_of_the_person_of_the_former_form_and_adds_todays(asked: Asked, text: str) -> None:
    before = asked.ask("person", id=f"email:{text}")
    receipt = asked.tell("page", email=text)
    assert (receipt["status"], receipt["person"]) == ("accepted", before["id"])
    after = asked.ask("person", id=f"email:{text}")
    assert len(after["identifiers"]) == len(before["identifiers"]) + 1
    assert asked.tell("page", email=text, anonymous_id="phone")["person"] == before["id"]
    refold_everybody(asked.engine.store, asked.engine.catalogue)
    staging.assert_refold_changes_nothing(asked.engine)


def test_a_number_without_a_country_finds_and_yet_does_not_identify(asked: Asked) -> None:
    assert asked.tell("page", phone="07700 900123")["code"] == "no_identifier"


def test_a_retry_of_what_was_recorded_is_a_duplicate_though_its_identifiers_have_other_forms(asked: Asked) -> None:
    sent = {"user_id": "rita", "phone": "07700 900999", "email": "rita@bücher.example"}
    events = [{"type": "identify", "key": "retry", "identifiers": sent, "properties": {"plan": "pro"}}]
    [receipt] = asked.ask("record", source="direct", events=events)["receipts"]
    assert receipt["status"] == "duplicate"
    events[0]["properties"] = {"plan": "free"}
    [receipt] = asked.ask("record", source="direct", events=events)["receipts"]
    assert receipt["status"] == "conflict"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jo\u0308rg@x.example", "complaint"),
        ("jörg@x.example", "complaint"),
        ("JÖRG@X.example", "complaint"),
        ("ann@bücher.example", "bounce"),
        ("ann@xn--bcher-kva.example", "bounce"),
        ("e\u0301ve@x.example", "complaint"),
        ("éve@x.example", "complaint"),  # their person was erased
    ],
)
def test_a_suppressed_address_stays_suppressed_in_every_form_until_it_is_lifted(
    asked: Asked, text: str, reason: str
) -> None:
    assert asked.ask("suppression_get", address=text)["reason"] == reason
    asked.tell("identify", user_id="new", properties={"email": text})
    assert asked.ask("consent_of", id="new")["suppressed"] == reason
    assert asked.ask("suppression_import", addresses=[text])["added"] == 0
    listed = len(asked.ask("suppression_list")["addresses"])
    asked.ask("suppression_lift", address=text, reason="back")
    assert asked.ask("consent_of", id="new")["suppressed"] == ""
    assert len(asked.ask("suppression_list")["addresses"]) == listed - ("ve@" not in text)
    assert asked.ask("suppression_import", addresses=[text])["added"] == 1
    assert asked.ask("consent_of", id="new")["suppressed"] == "import"


@pytest.mark.parametrize("text", ["zoe\u0308@x.example", "zoë@x.example"])
def test_an_unsubscribed_address_stays_so_in_every_form(asked: Asked, text: str) -> None:
    asked.tell("identify", user_id="new", properties={"email": text})
    [news] = asked.ask("consent_of", id="new")["subscriptions"]
    assert news["status"] == "unsubscribed"


def test_nothing_of_the_store_differs_from_its_log(asked: Asked) -> None:
    shards = refold_shard(asked.engine.store, asked.engine.catalogue)
    assert [one.item.key for one in shards if one.differs and not one.is_stale] == []
    refold_everybody(asked.engine.store, asked.engine.catalogue)
    staging.assert_refold_changes_nothing(asked.engine)


def test_people_of_two_forms_are_joined_by_an_event_after_a_preview(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unpacked(tmp_path / "old.db")
    Path("threadline.yaml").write_text(DEFINITIONS)

    def migrated(*options: str) -> str:
        assert run(composition, ["migrate", "--identifiers", *options, "--file", "old.db"]) == 0
        return capfd.readouterr().out

    preview = migrated("--dry-run")
    assert "(email:ann@bücher.example) and " in preview
    assert "(email:ann@xn--bcher-kva.example): would be joined\n" in preview
    assert preview.endswith("\n1 pair of people would be joined, 0 left apart\n")
    assert migrated("--dry-run") == preview
    assert migrated().endswith("1 pair of people joined, 0 left apart\n")
    assert migrated() == "0 pairs of people joined, 0 left apart\n"
    assert run(composition, ["person", "email:ann@bücher.example", "--file", "old.db", "--json"]) == 0
    shown = capfd.readouterr().out
    assert "ann-2" in shown
    assert "Turin" in shown
    assert run(composition, ["apply", "--file", "old.db"]) == 0
    assert run(composition, ["verify", "--file", "old.db"]) == 0


def test_two_forms_of_one_address_count_once_towards_a_limit(tmp_path: Path) -> None:
    asked = Asked(identifiers={"email": {"limit": 1}})
    asked.now = parse_time("2026-12-01T00:00:00Z")
    asked.engine = Engine(SqliteStore(unpacked(tmp_path / "old.db")), asked.engine.catalogue, lambda: asked.now)
    person = asked.ask("person", id="user_id:rita")["id"]
    assert asked.tell("page", email="rita@bücher.example")["person"] == person
    assert known(asked, "rita") == known(asked, "email:rita@xn--bcher-kva.example")
    assert asked.ask("quarantine_list")["joins"] == []
    asked.engine.close()


def test_people_whom_an_operator_has_set_apart_are_not_joined(asked: Asked) -> None:
    [pair] = two_forms(asked.engine.reader)
    survivor, _ = join_forms(asked.engine.identity, pair, "test")
    assert list(two_forms(asked.engine.reader)) == []
    [merge] = asked.ask("events_of", id=survivor, type=MERGED)["events"]
    apart = asked.engine.identity.unmerge("default", merge["id"], request="u")
    [pair] = two_forms(asked.engine.reader)
    assert {pair.person, pair.other} == set(apart)
    assert pair.objection == "an operator has set them apart"
