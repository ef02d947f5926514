"""Laws: whatever the store has of a person is declared, and in the archive of that person and of nobody else."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given

import threadline
from tests.laws import staging
from tests.laws.person_stage import CATALOGUE, MARK, STARTS_AT, Stage, lines
from threadline.capabilities.ask.export.archive import archive_of
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.maintenance.person_keys import keys_of_people
from threadline.kernel.errors import BeingErased, NotFound
from threadline.kernel.event import Event
from threadline.kernel.personal import Subject
from threadline.kernel.ports import Person
from threadline.kernel.store import Key, feed_pages
from threadline.testing import scenarios

_NOT_OURS = ("threadline.testing", "threadline.stores")
"""What names tables of its own invention, or none."""


# --- declarations -----------------------------------------------------------------------------


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(threadline.__path__, "threadline."):
        if not info.name.startswith(_NOT_OURS) and not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def tables_named(module: ModuleType) -> Iterator[str]:
    """The tables of the keys and rows that a module makes, where their name is a constant."""
    source = module.__spec__.loader.get_source(module.__name__) or ""  # type: ignore[union-attr]
    if "Row" not in source and not any(value is Key for value in vars(module).values()):
        return  # to read the syntax of every module takes five seconds
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        if getattr(module, node.func.id, None) is Key or node.func.id == "Row":
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield first.value
            elif isinstance(first, ast.Name) and isinstance(getattr(module, first.id, None), str):
                yield getattr(module, first.id)


def test_every_table_that_the_code_names_is_declared() -> None:
    declared = {table.name for table in CATALOGUE.tables} | {shared.name for shared in CATALOGUE.shared}
    named = {name: module.__name__ for module in modules() for name in tables_named(module)}
    assert len(named) > 50
    assert {name: where for name, where in named.items() if name not in declared} == {}


def test_every_projection_is_in_one_file_and_every_table_names_a_file_that_exists() -> None:
    files = {file.name for file in CATALOGUE.person_files}
    shown = Counter(name for file in CATALOGUE.person_files for name in file.projections)
    assert Counter(projection.name for projection in CATALOGUE.projections) == shown
    assert {table.name for table in CATALOGUE.tables if table.shown_in} - {
        table.name for table in CATALOGUE.tables if table.shown_in in files
    } == set()


def test_every_table_of_a_projection_follows_from_it() -> None:
    by_name = {table.name: table.contents for table in CATALOGUE.tables}
    state_tables = {name for projection in CATALOGUE.projections for name in projection.index.tables}
    assert {name: by_name[name] for name in state_tables} == dict.fromkeys(state_tables, "state_rows")


# --- what is in the store ---------------------------------------------------------------------


def subject_of(on: Stage, who: str) -> Subject:
    return Subject(on.engine, on.engine.reader.person("default", f"{who}mark-id"), on.now)


def keys_of(on: Stage, subject: Subject) -> set[Key]:
    """Every key that follows from the declarations."""
    keys = set(keys_of_people([on.engine.store], CATALOGUE, set(subject.person.heads)))
    for recorded in subject.events():
        for rows in CATALOGUE.plan(recorded.event.type).marks:
            keys.update(Key(row.table, row.partition, row.sort) for row in rows(recorded))
    for table in CATALOGUE.tables:
        keys.update(table.keys(subject) if table.keys is not None else ())
    return keys


def test_every_item_that_names_a_person_has_a_key_that_is_declared() -> None:
    on, who = Stage(), "ada"
    subject = subject_of(on, who)
    names = [*subject.ids, *(recorded.id for recorded in subject.events())]
    keys, tables = keys_of(on, subject), {table.name: table for table in CATALOGUE.tables}
    undeclared, met = [], set[str]()
    for item, text in on.items():
        if f"{who}mark-".encode() in text.lower() or any(name.encode() in text for name in names):
            met.add(item.key.table)
            if item.key not in keys or tables[item.key.table].contents == "nobody":
                undeclared.append(item.key)
    assert undeclared == []
    assert met >= {
        "board",
        "broadcast_recipient",
        "broadcast_status",
        "consent",
        "decision",
        "group",
        "inbox",
        "journey",
        "mail_event",
        "mail_warm_up",
        "outbox",
        "parked",
        "person",
        "quarantine",
        "rejected",
        "segment",
        "suppression",
        "tag",
        "thread",
        "timer",
        "unknown",
        "what_if",
    }


def test_the_archive_has_every_mark_of_the_person_and_none_of_another() -> None:
    on = Stage()
    marks = {mark[0].lower() for _, text in on.items() for mark in MARK.finditer(text)}
    marks |= {mark[0].lower() for each in feed_pages(on.engine.store) for mark in MARK.finditer(each.entry.body)}
    for who, other in (("ada", "bob"), ("bob", "ada")):
        archive = b"".join(on.archive(who).values()).lower()
        own = {mark for mark in marks if mark.startswith(who.encode())}
        assert len(own) > 15
        assert {mark for mark in own if mark not in archive} == set()
        assert f"{other}mark".encode() not in archive
        assert [id for id in subject_of(on, other).ids if id.encode() in archive] == []


def test_what_an_item_says_is_in_the_file_that_its_table_names() -> None:
    on = Stage()
    archive = on.archive("ada")
    shown_in = {table.name: table.shown_in for table in CATALOGUE.tables if table.shown_in}
    met = set()
    for item, text in on.items():
        for mark in {mark[0].lower() for mark in MARK.finditer(text) if mark[0].lower().startswith(b"ada")}:
            if item.key.table in shown_in:
                met.add(shown_in[item.key.table])
                assert mark in archive[f"{shown_in[item.key.table]}.jsonl"].lower(), item.key
    assert met >= {"consent", "effects", "inbox", "leaderboards", "rejected", "what_ifs"}


def test_the_events_are_those_of_the_log_whole_and_once() -> None:
    on = Stage()
    subject = subject_of(on, "ada")
    exported = lines(on.archive("ada")["events.jsonl"])
    logged = [on.engine.log.read(each) for each in feed_pages(on.engine.store)]
    own = {each.id: each for each in logged if each.thread in subject.person.heads}
    assert sorted(each["id"] for each in exported) == sorted(own)
    for each in exported:
        event = own[each["id"]].event
        assert each["properties"] == msgspec.json.decode(msgspec.json.encode(event.properties))
        assert [(i["kind"], i["value"]) for i in each["identifiers"]] == [(i.kind, i.value) for i in event.identifiers]


# --- the archive itself -----------------------------------------------------------------------


def export(on: Stage, who: str, at: int) -> Iterator[bytes]:
    operation = on.engine.catalogue.operation("people_export")
    pieces: Iterator[bytes] = operation.run(Context(on.engine, "default", at), operation.params(id=who))
    return pieces


def test_the_same_position_and_instant_make_the_same_bytes() -> None:
    on = Stage()
    at = on.now
    once = b"".join(export(on, "adamark-id", at))
    assert b"".join(export(on, "adamark-id", at)) == once
    # Another process unpacks the states that this one has folded.
    on.engine = Engine(on.engine.store, CATALOGUE, lambda: at)
    assert b"".join(export(on, "adamark-id", at)) == once


def test_whoever_is_unknown_has_no_archive() -> None:
    with pytest.raises(NotFound):
        export(Stage(), "eve", STARTS_AT)


def test_what_is_recorded_while_it_is_written_is_not_in_it() -> None:
    on = Stage()
    pieces = export(on, "adamark-id", on.now)
    before = on.engine.reader.person("default", "adamark-id").position
    on.record("ada", "identify", "late", name="adamark-late")
    on.record("ada", "tool_used", "late too")
    data = b"".join(pieces)
    assert on.engine.reader.person("default", "adamark-id").position > before
    archive = on.unzipped(data)
    count = len(lines(archive["events.jsonl"]))
    assert (count, msgspec.json.decode(archive["manifest.json"])["position"]["events"]) == (before, before)
    assert b"adamark-late" not in b"".join(archive.values())


def test_an_archive_of_somebody_who_is_erased_meanwhile_breaks_off() -> None:
    on = Stage()
    # Other files ask for the person themselves.
    pieces = archive_of(subject_of(on, "ada"), [each for each in CATALOGUE.person_files if each.name == "events"], "")
    on.shop.people.erase("adamark-id", request="gone")
    with pytest.raises((NotFound, BeingErased)):
        b"".join(pieces)


def test_the_manifest_says_of_each_file_what_is_in_it() -> None:
    archive = Stage().archive("ada")
    manifest: dict[str, Any] = msgspec.json.decode(archive.pop("manifest.json"))
    listed = {file["name"]: file for file in manifest["files"]}
    assert listed.keys() == archive.keys()
    for name, data in archive.items():
        assert (listed[name]["bytes"], listed[name]["sha256"]) == (len(data), sha256(data).hexdigest())
        assert "lines" not in listed[name] or listed[name]["lines"] == len(data.splitlines())
    files = {file.name for file in CATALOGUE.person_files}
    assert files == {name.removesuffix(".jsonl") for name in listed if name != "index.html"} | set(manifest["empty"])


def test_a_damaged_event_is_named_in_the_manifest_and_everything_else_is_there() -> None:
    on = Stage()
    whole = lines(on.archive("ada")["events.jsonl"])
    found = next(each for each in feed_pages(on.engine.store) if b"adamark-land" in each.entry.body)
    assert on.engine.store.mend(found, found.entry._replace(digest=found.entry.digest ^ 1))
    on.engine.recorder.clear_caches()
    archive = on.archive("ada")
    assert lines(archive["events.jsonl"]) == [each for each in whole if each["id"] != found.entry.id]
    assert msgspec.json.decode(archive["manifest.json"])["damaged_events"] == [found.entry.id]


def test_ranks_are_shown_without_the_others() -> None:
    on = Stage()
    on.shop.points.adjust("bobmark-id", points=-3, request="less", reason="less")
    on.record("ada", "tool_used", "more")
    shown = [each for each in lines(on.archive("ada")["leaderboards.jsonl"]) if "rank" in each]
    assert {(each["name"], each["among"], each["rank"], each["of"]) for each in shown} == {
        ("points", "", 1, 2),
        ("points", "country=adamark-land", 1, 1),
    }


@given(scenarios.histories())
def test_the_archives_of_a_history_share_its_events_out(history: list[Event]) -> None:
    on = staging.engine(clock=staging.ticking(), shipped=True)
    on.recorder.record(history)
    exported = dict[str, list[str]]()
    for person in on.reader.all_people("default"):
        files = [each for each in CATALOGUE.person_files if each.name != "leaderboards"]
        archive = Stage.unzipped(b"".join(archive_of(Subject(on, person, on.now()), files, "test")))
        exported[person.id] = [each["id"] for each in lines(archive.get("events.jsonl", b""))]
        # Nobody shares an identifier in these histories: "user-1" is in the archive of one person alone.
        others = [each for other in on.reader.all_people("default") if other.id != person.id for each in named(other)]
        assert [name for name in others if name.encode() in b"".join(archive.values())] == []
    logged = [each.entry.id for each in feed_pages(on.store)]
    assert sorted(id for ids in exported.values() for id in ids) == sorted(logged)


def named(person: Person) -> list[str]:
    """What names a person and nobody else: the numbers in phones are in other texts as well."""
    return [each.value for each in person.identifiers.values() if each.kind != "phone"]


def test_the_views_of_two_people_are_read_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)
    engine: Any = SimpleNamespace(reader=SimpleNamespace(views=lambda person, now: both.wait()))
    people: list[Any] = [SimpleNamespace(id=name, heads={}) for name in "ab"]
    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(lambda person: Subject(engine, person, 0).views, people)) == [0, 1]
