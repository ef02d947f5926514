"""Laws: whatever the store has of a person is declared, and in the archive of that person and of nobody else."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from types import ModuleType
from typing import Any

import msgspec
import pytest

import threadline
from tests.laws.person_stage import MARK, Stage, lines
from threadline.engine.context import Context
from threadline.engine.maintenance.person_keys import keys_of_people
from threadline.kernel.errors import NotFound
from threadline.kernel.personal import Subject
from threadline.kernel.store import Key, feed_pages

_NOT_OURS = ("threadline.testing", "threadline.stores")
"""What names tables of its own invention, or none."""


@cache
def stage() -> Stage:
    """Made once: nothing here writes to it."""
    return Stage()


# --- declarations -----------------------------------------------------------------------------


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(threadline.__path__, "threadline."):
        if not info.name.startswith(_NOT_OURS) and not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def tables_named(module: ModuleType) -> Iterator[str]:
    """The tables of the keys and rows that a module makes, where their name is a constant."""
    source = module.__spec__.loader.get_source(module.__name__)  # type: ignore[union-attr]
    for node in ast.walk(ast.parse(source or "")):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        if getattr(module, node.func.id, None) is Key or node.func.id == "Row":
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield first.value
            elif isinstance(first, ast.Name) and isinstance(getattr(module, first.id, None), str):
                yield getattr(module, first.id)


def test_every_table_that_the_code_names_is_declared() -> None:
    found = stage().engine.catalogue
    declared = {table.name for table in found.tables} | {shared.name for shared in found.shared}
    named = {name: module.__name__ for module in modules() for name in tables_named(module)}
    assert len(named) > 50
    assert {name: where for name, where in named.items() if name not in declared} == {}


def test_every_projection_is_in_one_file_and_every_table_names_a_file_that_exists() -> None:
    found = stage().engine.catalogue
    files = {file.name for file in found.person_files}
    shown = Counter(name for file in found.person_files for name in file.projections)
    assert Counter(projection.name for projection in found.projections) == shown
    assert {table.name for table in found.tables if table.shown_in} - {
        table.name for table in found.tables if table.shown_in in files
    } == set()


def test_every_table_of_a_projection_follows_from_it() -> None:
    found = stage().engine.catalogue
    by_name = {table.name: table.contents for table in found.tables}
    state_tables = {name for projection in found.projections for name in projection.index.tables}
    assert {name: by_name[name] for name in state_tables} == dict.fromkeys(state_tables, "state_rows")


# --- what is in the store ---------------------------------------------------------------------


def subject_of(who: str) -> Subject:
    on = stage()
    return Subject(on.engine, on.engine.reader.person("default", f"{who}mark-id"), on.now)


def keys_of(subject: Subject) -> set[Key]:
    """Every key that follows from the declarations."""
    found = stage().engine.catalogue
    keys = set(keys_of_people([stage().engine.store], found, set(subject.person.heads)))
    for recorded in subject.events():
        for rows in found.plan(recorded.event.type).marks:
            keys.update(Key(row.table, row.partition, row.sort) for row in rows(recorded))
    for table in found.tables:
        keys.update(table.keys(subject) if table.keys is not None else ())
    return keys


@pytest.mark.parametrize("who", ["ada", "bob"])
def test_every_item_that_names_a_person_has_a_key_that_is_declared(who: str) -> None:
    subject = subject_of(who)
    names = [*subject.ids, *(recorded.id for recorded in subject.events())]
    keys, tables = keys_of(subject), {table.name: table for table in stage().engine.catalogue.tables}
    undeclared, met = [], set[str]()
    for item, text in stage().items():
        if f"{who}mark-".encode() in text.lower() or any(name.encode() in text for name in names):
            met.add(item.key.table)
            if item.key not in keys or tables[item.key.table].contents == "nobody":
                undeclared.append(item.key)
    assert undeclared == []
    assert met >= {
        "board", "broadcast_recipient", "broadcast_status", "consent", "decision", "group", "inbox", "journey",
        "mail_event", "mail_warm_up", "outbox", "parked", "person", "quarantine", "rejected",
        "segment", "suppression", "tag", "thread", "timer", "unknown", "what_if",
    }  # fmt: skip


@pytest.mark.parametrize(("who", "other"), [("ada", "bob"), ("bob", "ada")])
def test_the_archive_has_every_mark_of_the_person_and_none_of_another(who: str, other: str) -> None:
    archive = b"".join(stage().archive(who).values()).lower()
    marks = {mark[0].lower() for _, text in stage().items() for mark in MARK.finditer(text)}
    told = {mark[0].lower() for each in feed_pages(stage().engine.store) for mark in MARK.finditer(each.entry.body)}
    own = {mark for mark in marks | told if mark.startswith(who.encode())}
    assert len(own) > 15
    assert {mark for mark in own if mark not in archive} == set()
    assert f"{other}mark".encode() not in archive
    assert [id for id in subject_of(other).ids if id.encode() in archive] == []


def test_the_events_are_those_of_the_log_whole_and_once() -> None:
    subject = subject_of("ada")
    exported = lines(stage().archive("ada")["events.jsonl"])
    logged = [stage().engine.log.unpack(each.entry) for each in feed_pages(stage().engine.store)]
    own = {each.id: each for each in logged if each.thread in subject.person.heads}
    assert sorted(each["id"] for each in exported) == sorted(own)
    for each in exported:
        event = own[each["id"]].event
        assert each["properties"] == msgspec.json.decode(msgspec.json.encode(event.properties))
        assert [(i["kind"], i["value"]) for i in each["identifiers"]] == [(i.kind, i.value) for i in event.identifiers]


# --- the archive itself -----------------------------------------------------------------------


def export(who: str) -> Iterator[bytes]:
    on = stage()
    operation = on.engine.catalogue.operation("people_export")
    pieces: Iterator[bytes] = operation.run(Context(on.engine, "default", on.now), operation.params(id=who))
    return pieces


def test_the_same_position_and_instant_make_the_same_bytes() -> None:
    assert b"".join(export("adamark-id")) == b"".join(export("adamark-id"))


def test_whoever_is_unknown_has_no_archive() -> None:
    with pytest.raises(NotFound):
        export("eve")


def test_what_is_recorded_while_it_is_written_is_not_in_it() -> None:
    on = Stage()
    operation = on.engine.catalogue.operation("people_export")
    pieces = operation.run(Context(on.engine, "default", on.now), operation.params(id="adamark-id"))
    before = on.engine.reader.person("default", "adamark-id").position
    on.record("ada", "identify", "late", name="adamark-late")
    on.record("ada", "tool_used", "late too")
    data = b"".join(pieces)
    assert on.engine.reader.person("default", "adamark-id").position > before
    archive = on.unzipped(data)
    count = len(lines(archive["events.jsonl"]))
    assert (count, msgspec.json.decode(archive["manifest.json"])["position"]["events"]) == (before, before)
    assert b"adamark-late" not in b"".join(archive.values())


def test_the_manifest_says_of_each_file_what_is_in_it() -> None:
    archive = stage().archive("ada")
    manifest: dict[str, Any] = msgspec.json.decode(archive.pop("manifest.json"))
    listed = {file["name"]: file for file in manifest["files"]}
    assert listed.keys() == archive.keys()
    for name, data in archive.items():
        assert (listed[name]["bytes"], listed[name]["sha256"]) == (len(data), sha256(data).hexdigest())
        assert "lines" not in listed[name] or listed[name]["lines"] == len(data.splitlines())
    files = {file.name for file in stage().engine.catalogue.person_files}
    assert files == {name.removesuffix(".jsonl") for name in listed if name != "index.html"} | set(manifest["empty"])
