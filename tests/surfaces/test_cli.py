"""The command line: a command for each operation, and messages instead of tracebacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import threadline
from tests import forked
from tests.surfaces.cli_stage import call, composed, store
from threadline.app import operations
from threadline.engine.credentials import Credentials
from threadline.kernel.time import system_clock
from threadline.surfaces.cli import listing
from threadline.surfaces.cli.listing import command_name
from threadline.surfaces.cli.program import COMMANDS, GROUPS, RUN, SECTIONS, run
from threadline.surfaces.cli.serve import welcome
from threadline.surfaces.composition import Composition
from threadline.surfaces.operation_calls import field_names, shown

__all__ = ["call", "composed", "store"]


def test_a_person_is_shown_as_tables_and_as_json(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("person", "user_id:42", "--all")
    assert told.code == 0
    assert "monetary_total" in told.out
    assert "29.33" in told.out
    as_json = json.loads(call("person", "user_id:42", "--json").out)
    assert as_json["features"]["monetary_total"]["value"] == 29.33


def test_every_operation_is_a_command_with_all_its_parameters(call) -> None:  # type: ignore[no-untyped-def]
    listed = {"": call("--help").out}
    for operation in shown(operations(), "cli").values():
        name = command_name(operation)
        group, _, verb = name.rpartition(" ")
        if group not in listed:
            assert f"\n  {group} " in listed[""]
            listed[group] = call(group, "--help").out
        assert f"\n  {verb} " in listed[group]
        if name in COMMANDS:
            continue
        told = call(*name.split(), "--help")
        assert told.code == 0
        for field in field_names(operation):
            if field == "password":
                continue  # it is asked for: what stands in a command is shown to everybody on the machine
            assert f"--{field.replace('_', '-')}" in told.out or field.upper() in told.out, (name, field)


def test_an_analysis_shows_its_query_only_where_it_is_asked_for(  # type: ignore[no-untyped-def]
    store: Path, call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADLINE_ANALYTICS_DIR", str(tmp_path / "analytics"))
    plain, asked = call("analytics", "today"), call("analytics", "today", "--sql")
    assert (plain.code, asked.code) == (0, 0), plain.err
    assert "SELECT" not in plain.out
    assert "SELECT" in asked.out
    assert "SELECT" in json.loads(call("analytics", "today", "--json").out)["sql"]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["rules", "--help"]])
def test_help_and_version_import_no_capability_and_no_engine(arguments: list[str]) -> None:
    program = (
        "import sys; from threadline.surfaces.cli import main\n"
        f"try: main({arguments})\n"
        "except SystemExit as ended: assert not ended.code\n"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules if name.startswith('threadline.')}\n"
        "sys.exit(' '.join(sorted(rooms - {'threadline.kernel', 'threadline.surfaces'})) or None)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(("threadline ", "Usage: "))


def test_help_asks_the_operations_where_capabilities_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADLINE_CAPABILITIES", "-journeys")
    assert listing.shipped() is None


def test_the_help_of_the_program_has_each_command_and_group_once_and_begins_with_five(call) -> None:  # type: ignore[no-untyped-def]
    text = call("--help").out
    sections = {
        heading: re.findall(r"^  (\S+)", lines, re.MULTILINE)
        for heading, lines in re.findall(r"^([A-Z][a-z ]+):\n((?:  .*\n)+)", text, re.MULTILINE)
    }
    assert list(sections) == ["Options", *SECTIONS, RUN]
    assert len(sections["Begin"]) == 5
    listed = [name for heading, names in sections.items() if heading != "Options" for name in names]
    groups = {*GROUPS, *(each.group.name.replace("_", "-") for each in operations() if each.group)}
    alone = {name for name in COMMANDS if " " not in name}
    alone |= {command_name(each) for each in shown(operations(), "cli").values() if each.group is None}
    assert sorted(listed) == sorted(groups | alone)
    assert {name for names in SECTIONS.values() for name in names} <= set(listed), "a heading lists what is no command"


def test_the_help_of_a_command_has_what_its_parameters_do_and_not_what_they_are(call) -> None:  # type: ignore[no-untyped-def]
    assert "Of which segment, and which page." not in call("segments", "members", "--help").out
    assert "Each has its own outcome" in call("record", "--help").out


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("person", "user_id:nobody"), 1, {"code": "not_found", "detail": "nobody is known as 'user_id:nobody'"}),
        (("features", "top", "no_such"), 1, {"code": "not_found", "hint": "`threadline features list` lists them all"}),
        (("segments", "mmbers"), 2, {"code": "usage", "detail": "did you mean 'members'?"}),
        (("events", "of"), 2, {"code": "usage", "detail": "Missing argument 'ID'"}),
    ],
)
def test_an_error_under_json_is_json_on_stderr(  # type: ignore[no-untyped-def]
    arguments: tuple[str, ...], code: int, error: dict[str, str], store: Path, call
) -> None:
    told = call(*arguments, "--json")
    assert (told.code, told.out) == (code, "")
    answer = json.loads(told.err)
    assert {name for name, text in error.items() if text in answer[name]} == {*error}, answer


DECLARED = """
points: {expires_after: 30d}
streaks: {daily: false, weekly: {cadence: week}}
memory: {bought_for: {events: purchase_completed, fact: purchase/bought_for, value: total}}
segments: {everybody: {when: {field: traits.plan, exists: false}}}
leaderboards: {points: {score: points.earned}, spenders: {score: features.gross}}
interests: {period: 7d, events: {purchase_completed: {topic: money, scopes: {currency: currency}}}}
features: {gross: {aggregate: sum, of: total, currency: currency, events: purchase_completed}}
"""


def test_commands_answer_by_the_definitions_of_the_store(tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "threadline.yaml").write_text(DECLARED)
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"})
        tl.track("42", "tool_used")
        asked: dict[str, tuple[Any, ...]] = {
            "features list": (),
            "leaderboards list": (),
            "memory definitions": (),
            "points tables": (),
            "segments list": (),
            "leaderboards top": ("spenders",),
            "segments members": ("everybody",),
            "segments leaving": ("everybody",),
            "segments why": ("user_id:42", "everybody"),
            "leaderboards standing": ("user_id:42", "points"),
            "features of": ("user_id:42",),
            **dict.fromkeys(("interests of", "memory of", "points of", "segments of", "streaks of"), ("user_id:42",)),
        }
        answers = {name: attrgetter(name.replace(" ", "."))(tl)(*given) for name, given in asked.items()}
        expected = msgspec.to_builtins(answers)
    for name, given in asked.items():
        told = json.loads(call(*name.split(), *given, "--json", "--file", str(path)).out)
        assert (name, {**told, "as_of": None}) == (name, {**expected[name], "as_of": None})


def test_what_definitions_leave_out_is_told(tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "threadline.yaml").write_text("points: false")
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "tool_used")
    for arguments, said in (
        (("points", "of", "user_id:42"), "points are switched off"),
        (
            ("points", "adjust", "user_id:42", "--points", "5", "--request", "a", "--reason", "b"),
            "points are switched off",
        ),
        (("points", "spend", "user_id:42", "--points", "5", "--request", "a"), "points are switched off"),
        (
            (
                "points",
                "tables",
            ),
            "is switched off by the definitions of this store",
        ),
    ):
        told = call(*arguments, "--file", str(path))
        assert (told.code, said in told.err) == (1, True), told.err
    told = json.loads(call("events", "of", "user_id:42", "--json", "--file", str(path)).out)
    assert [each["type"] for each in told["events"]] == ["tool_used"]


def test_options_are_typed_and_mistakes_are_usage(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    for arguments, said in (
        (("events", "of", "user_id:42", "--limit", "x"), "'x' is not a valid integer"),
        (("events", "of", "user_id:42", "--limit", "0"), "limit: expected `int` >= 1"),
        (("events", "of", "user_id:42", "--order", "up"), "--order"),
        (
            (
                "events",
                "of",
            ),
            "Missing argument 'ID'",
        ),
        (("zzzzz",), "No such command 'zzzzz'; `threadline --help` lists them."),
        (("verfy",), "did you mean 'verify'?"),
        (("rule_sets",), "did you mean 'rule-sets'?"),
        (("record", "--events", "{"), "not JSON"),
        (("record",), "name a FILE of events"),
    ):
        told = call(*arguments)
        assert told.code == 2, arguments
        assert said in told.err, told.err


def test_errors_are_a_message_with_a_hint(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("person", "user_id:9")
    assert (told.code, told.out) == (1, "")
    assert "Error: nobody is known as 'user_id:9'" in told.err
    assert "Traceback" not in told.err
    told = call("person", "user_id:42", "--file", str(tmp_path / "none.db"))
    assert told.code == 1
    assert "none.db" in told.err
    assert "whatever records first makes it" in told.err
    told = call("person", "ada")
    assert "Hint: This is a user id; others have their kind first, as in email:ada@example.com." in told.err
    told = call("memory", "remember", "user_id:42", "--type", "preference", "--key", "colour", "--value", "blue")
    assert """text stands in double quotes, such as '"blue"'""" in told.err


def test_an_answer_that_nothing_was_done_is_a_failure_to_scripts(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    spend = ("points", "spend", "user_id:42", "--points", "1000000", "--request", "r", "--json")
    for _ in range(2):
        told = call(*spend)
        assert (told.code, json.loads(told.out)["status"]) == (1, "refused")
    event = {"type": "click", "identifiers": {"user_id": "42"}, "key": "k1"}
    for events, code in (
        ([event], 0),
        ([event], 0),
        ([{**event, "type": "tap"}], 1),
        ([{**event, "type": "tap"}, {**event, "key": "k2"}], 0),
        ([{**event, "key": "k3", "identifiers": {"user_id": " "}}], 1),
        ([], 0),
    ):
        told = call("record", "--events", json.dumps(events), "--json")
        assert told.code == code, (events, told.out, told.err)


def test_a_wrong_setting_is_told(store: Path, call, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("THREADLINE_PROT", "1")
    told = call("person", "user_id:42")
    assert told.code == 1
    assert "did you mean 'THREADLINE_PORT'?" in told.err


ONE, TWO = ({"type": "click", "key": key, "identifiers": {"user_id": "1"}} for key in "ab")
FILES: dict[str, tuple[str, int]] = {
    "a list": (json.dumps([ONE, TWO]), 2),
    "the body of HTTP": (json.dumps({"events": [ONE, TWO]}, indent=1), 2),
    "an event in each line": (f"{json.dumps(ONE)}\n\n{json.dumps(TWO)}\n", 2),
    "one event": (json.dumps(ONE), 1),
}


@pytest.mark.parametrize("name", FILES)
def test_events_are_recorded_from_a_file_and_from_standard_input(name: str, tmp_path: Path) -> None:
    text, events = FILES[name]
    (tmp_path / "events").write_text(text)
    for file, status in (("events", "accepted"), ("-", "duplicates")):
        command = [forked.threadline(), "record", file, "--file", "x.db", "--json"]
        ran = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert json.loads(ran.stdout)[status] == events, ran.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ([], "", "name a FILE of events"),
        (["-", "--events", "[]"], "[]", "name a FILE of events"),
        (["nowhere.json"], "", "nowhere.json: No such file"),
        (["-"], '{"type": "a"}\n{"type"\n', "line 2"),
        (["-"], "click", "this is not JSON"),
    ],
)
def test_events_that_cannot_be_read_are_a_mistake_of_usage(
    arguments: list[str], text: str, message: str, tmp_path: Path
) -> None:
    command = [forked.threadline(), "record", *arguments, "--file", "x.db"]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr


def test_lists_and_json_travel_as_options(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("people", "tag", "user_id:42", "--add", "vip", "--add", "early", "--json")
    assert json.loads(told.out)["tags"] == ["early", "vip"]
    events = [{"type": "click", "identifiers": {"user_id": "7"}, "key": "k"}]
    (tmp_path / "events.json").write_text(json.dumps(events))
    told = call("record", "--events", f"@{tmp_path / 'events.json'}", "--json")
    assert json.loads(told.out)["accepted"] == 1
    told = call("record", "--events", json.dumps(events), "--json")
    assert json.loads(told.out)["duplicates"] == 1


def test_reading_works_beside_a_writer_and_writing_does_not(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    with threadline.open(store):
        assert call("person", "user_id:42").code == 0
        assert call("verify").code == 0
        told = call("people", "tag", "user_id:42", "--add", "vip")
        assert told.code == 1
        assert "open for writing" in told.err


def test_keys_are_created_listed_and_revoked(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    made = json.loads(call("keys", "create", "--name", "shop", "--json").out)
    token = json.loads(
        call("keys", "create", "--name", "me", "--kind", "token", "--scopes", "read", "--scopes", "write", "--json").out
    )
    assert made["secret"].startswith("wk_")
    assert (token["secret"][:3], token["scopes"]) == ("tl_", ["read", "write"])
    listed = call("keys", "list").out
    assert "shop" in listed
    assert made["secret"] not in listed
    assert call("keys", "revoke", made["id"]).code == 0
    assert call("keys", "revoke", made["id"]).code == 1
    assert call("keys", "create", "--name", "x", "--scopes", "read").code == 1
    with threadline.open(store) as tl:
        credentials = Credentials(tl.engine.store, system_clock)
        assert credentials.find(made["secret"]) is None
        assert credentials.find(token["secret"]) is not None


def test_workspaces_are_apart(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call("person", "user_id:42", "--workspace", "other").code == 1


def test_hints_name_commands_as_they_are_called_here(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("features", "top", "no_such_feature")
    assert "`threadline features list` lists them all" in told.err
    with threadline.open(store):
        assert "what only reads can work beside it" in call("people", "tag", "user_id:42", "--add", "vip").err


def test_the_catalogue_is_listed(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("catalogue").out
    for name in ("features", "campaign_ignored", "people_merge_preview", "anonymous_id"):
        assert name in told


def test_a_fault_of_the_program_is_a_message_too(call, monkeypatch: pytest.MonkeyPatch, store: Path) -> None:  # type: ignore[no-untyped-def]
    from threadline.engine.reading.person_reader import PersonReader

    def person(self: PersonReader, workspace: str, ref: str, **more: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(PersonReader, "person", person)
    told = call("person", "user_id:42")
    assert told.code == 1
    assert "RuntimeError: a bug" in told.err
    assert "--traceback" in told.err
    with pytest.raises(RuntimeError, match="a bug"):
        call("--traceback", "person", "user_id:42")


@pytest.mark.parametrize("module", ["threadline", "threadline.surfaces.cli"])
def test_the_program_runs_as_a_module(module: str, store: Path) -> None:
    command = [sys.executable, "-m", module, "person", "user_id:42", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert json.loads(done.stdout)["position"] == 1
    assert done.stderr == ""


def test_a_reader_that_has_seen_enough_is_no_error(store: Path) -> None:
    command = f"{sys.executable} -m threadline catalogue | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(("words", "expected"), [("seg", "segments"), ("segments mem", "members"), ("ser", "serve")])
def test_a_shell_completes_groups_and_their_commands(
    composed: Composition, words: str, expected: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_THREADLINE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"threadline {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit):
        run(lambda: composed, [])
    assert capfd.readouterr().out.split() == [f"plain,{expected}"]


def test_the_first_start_of_a_server_names_its_console() -> None:
    text = welcome("http://127.0.0.1:8787", "wk-1", "tl-1")
    assert re.search(r"console.*: +http://127\.0\.0\.1:8787 .*admin token", text)
    assert "http://127.0.0.1:8787/docs" in text
