"""The command line: a command for each operation, messages instead of tracebacks, and what looks after a store."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import threadline
from threadline.app import composition, operations
from threadline.engine.credentials import Credentials
from threadline.kernel.time import DAY, system_clock
from threadline.settings import PREFIX, describe
from threadline.surfaces.calling import field_names, shown
from threadline.surfaces.cli.program import COMMANDS, command_name, run
from threadline.surfaces.composition import Composition


@pytest.fixture(scope="module")
def composed() -> Composition:
    return composition()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one purchase; commands find it by the environment."""
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"}, key="order-1")
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    return path


class Ran:
    """What a command answered."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(composed: Composition, capfd: pytest.CaptureFixture[str]) -> object:
    def call(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(composed, arguments)
        found = capfd.readouterr()
        return Ran(code, found.out, found.err)

    return call


def test_a_person_is_shown_as_tables_and_as_json(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("person", "user_id:42")
    assert told.code == 0
    assert "monetary_total" in told.out
    assert "29.33" in told.out
    as_json = json.loads(call("person", "user_id:42", "--json").out)
    assert as_json["features"]["monetary_total"]["value"] == 29.33


def test_every_operation_is_a_command_with_all_its_parameters(call) -> None:  # type: ignore[no-untyped-def]
    listed = call("--help").out
    for operation in shown(operations(), "cli").values():
        name = command_name(operation.name)
        assert name in listed
        if name in COMMANDS:
            continue
        told = call(name, "--help")
        assert told.code == 0
        for field in field_names(operation):
            assert f"--{field.replace('_', '-')}" in told.out or field.upper() in told.out, (name, field)


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
            "feature_definitions": (), "leaderboards": (), "memory_definitions": (), "points_tables": (),
            "segment_definitions": (), "leaderboard": ("spenders",), "segment_members": ("everybody",),
            "segment_leaving": ("everybody",), "segment": ("user_id:42", "everybody"), "features": ("user_id:42",),
            "leaderboard_standing": ("user_id:42", "points"),
            **dict.fromkeys(("interests", "memory", "points", "segments", "streaks"), ("user_id:42",)),
        }  # fmt: skip
        expected = {name: getattr(tl, name)(*given) for name, given in asked.items()}
    for name, given in asked.items():
        told = json.loads(call(command_name(name), *given, "--json", "--file", str(path)).out)
        assert (name, {**told, "as_of": None}) == (name, {**expected[name], "as_of": None})


def test_what_definitions_leave_out_is_told(tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "threadline.yaml").write_text("points: false")
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "tool_used")
    for arguments, said in (
        (("points", "user_id:42"), "points are switched off"),
        (
            ("points-adjust", "user_id:42", "--points", "5", "--request", "a", "--reason", "b"),
            "points are switched off",
        ),
        (("points-spend", "user_id:42", "--points", "5", "--request", "a"), "points are switched off"),
        (("points-tables",), "is switched off by the definitions of this store"),
    ):
        told = call(*arguments, "--file", str(path))
        assert (told.code, said in told.err) == (1, True), told.err
    told = json.loads(call("events", "user_id:42", "--json", "--file", str(path)).out)
    assert [each["type"] for each in told["events"]] == ["tool_used"]


def test_options_are_typed_and_mistakes_are_usage(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    for arguments, said in (
        (("events", "user_id:42", "--limit", "x"), "'x' is not a valid integer"),
        (("events", "user_id:42", "--limit", "0"), "limit: expected `int` >= 1"),
        (("events", "user_id:42", "--order", "up"), "--order"),
        (("events",), "Missing argument 'ID'"),
        (("nonsense",), "No such command 'nonsense'; `threadline --help` lists them."),
        (("verfy",), "did you mean 'verify'?"),
        (("feature_definitions",), "did you mean 'feature-definitions'?"),
        (("record", "--events", "{"), "not JSON"),
        (("record",), "Missing option '--events'"),
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
    assert "Hint: Name a person by an identifier, such as user_id:ada, or by their id." in told.err
    told = call("remember", "user_id:42", "--type", "preference", "--key", "colour", "--value", "blue")
    assert """text stands in double quotes, such as '"blue"'""" in told.err


def test_an_answer_that_nothing_was_done_is_a_failure_to_scripts(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    spend = ("points-spend", "user_id:42", "--points", "1000000", "--request", "r", "--json")
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


def test_lists_and_json_travel_as_options(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("tag", "user_id:42", "--add", "vip", "--add", "early", "--json")
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
        told = call("tag", "user_id:42", "--add", "vip")
        assert told.code == 1
        assert "open for writing" in told.err


def test_keys_are_created_listed_and_revoked(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    made = json.loads(call("keys", "create", "shop", "--json").out)
    token = json.loads(call("keys", "create", "me", "--token", "--scope", "read", "--scope", "write", "--json").out)
    assert made["secret"].startswith("wk_")
    assert (token["secret"][:3], token["scopes"]) == ("tl_", ["read", "write"])
    listed = call("keys", "list").out
    assert "shop" in listed
    assert made["secret"] not in listed
    assert call("keys", "revoke", made["id"]).code == 0
    assert call("keys", "revoke", made["id"]).code == 1
    assert call("keys", "create", "x", "--scope", "read").code == 2
    with threadline.open(store) as tl:
        credentials = Credentials(tl.engine.store, system_clock)
        assert credentials.find(made["secret"]) is None
        assert credentials.find(token["secret"]) is not None


def test_workspaces_are_apart(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call("person", "user_id:42", "--workspace", "other").code == 1


def test_refold_brings_people_up_to_changed_definitions(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call("verify").code == 0
    (store.parent / "threadline.yaml").write_text(
        "features:\n  currencies: {aggregate: distinct, events: purchase_completed, of: currency}\n"
    )
    told = call("verify")
    assert told.code == 1
    assert "1 people who differ" in told.out
    told = call("refold")
    assert told.code == 0
    assert "1 people refolded from 1 events" in told.out
    assert "1 had changed" in told.out
    assert call("verify").code == 0
    vector = json.loads(call("features", "user_id:42", "--json").out)
    assert vector["features"]["currencies"]["value"] == 1


def test_verify_finds_lists_that_are_amiss_and_refold_writes_them_anew(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call("tag", "user_id:42", "--add", "vip").code == 0
    with threadline.open(store) as tl:
        from threadline.kernel.store import Batch, Delete, Key, Put

        (row,) = tl.engine.store.query("tag", "default/vip")
        stray = Put(Key("tag", "default/early", row.key.sort), row.value)
        assert tl.engine.store.commit([Batch(writes=[Delete(row.key), stray])]) == [None]
    told = call("verify")
    assert told.code == 1
    assert "2 index rows amiss" in told.out
    assert "tag default/vip" in told.out
    assert "is missing" in told.out
    assert "Index rows of profile were amiss" in call("refold").out
    assert call("verify").code == 0
    assert len(json.loads(call("people", "--tag", "vip", "--json").out)["people"]) == 1
    assert json.loads(call("people", "--tag", "early", "--json").out)["people"] == []


def test_verify_finds_what_was_tampered_with(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    with threadline.open(store) as tl:
        person = tl.engine.person("default", "user_id:42")
        from threadline.engine.person import pack_person, person_key
        from threadline.kernel.store import Batch, Put

        index = tl.engine.catalogue.index["activity"]
        person.states[index] = tl.engine.catalogue.projections[index].empty()
        put = Put(person_key(person.id), pack_person(person, tl.engine.catalogue))
        assert tl.engine.store.commit([Batch(writes=[put])]) == [None]
    told = call("verify")
    assert told.code == 1
    assert person.id in told.out


def test_the_doctor_looks_at_everything(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("doctor")
    assert told.code == 0
    for what in (
        "versions",
        "disk",
        "clock",
        "definitions",
        "catalogue",
        "store",
        "content",
        "log ahead",
        "lock",
        "last event",
    ):
        assert what in told.out
    assert "fault" not in told.out
    with threadline.open(store):
        told = call("doctor")
        assert (told.code, "is open for writing" in told.out) == (0, True)


def test_the_doctor_finds_faults(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    store.write_bytes(b"this is no store at all, and long enough to be read as one" * 100)
    told = call("doctor")
    assert told.code == 1
    assert "fault" in told.out
    assert "a backup that is whole can be put in its place" in " ".join(told.out.split()), "what to do is told too"


@pytest.mark.parametrize(
    "command", [["doctor"], ["verify"], ["person", "user_id:1"], ["serve", "--port", "0"], ["backup", "new.db"]]
)
def test_what_is_no_file_of_ours_is_named_for_what_it_is(call, tmp_path: Path, command: list[str]) -> None:  # type: ignore[no-untyped-def]
    folder, empty = tmp_path / "folder.db", tmp_path / "empty.db"
    folder.mkdir()
    empty.touch()
    said = call(*command, "--file", str(folder))
    assert (said.code, "folder.db is a folder; name a file in it" in _flat(said)) == (1, True)
    if command[0] != "serve":  # who writes makes a store of it
        said = call(*command, "--file", str(empty))
        assert (said.code, "empty.db is an empty file, not a Threadline store" in _flat(said)) == (1, True)


def _flat(told: Any) -> str:
    return " ".join((told.out + told.err).split())


def test_a_damaged_file_is_told_page_by_page_with_what_to_do(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        for number in range(60):
            tl.track(f"u{number}", "click", {"note": "x" * 2_000}, key=f"k{number}")
    content = bytearray(path.read_bytes())
    for page in range(len(content) // 8_192, len(content) // 4_096):
        content[page * 4_096 : page * 4_096 + 64] = bytes(64)
    path.write_bytes(content)
    told = call("verify", "--file", str(path))
    assert told.code == 1
    assert "file " in told.out
    assert "restore" in told.err
    told = call("doctor", "--file", str(path))
    assert told.code == 1
    assert re.search(r"fault +(content|store)", told.out)


def test_the_doctor_reads_definitions_where_there_is_no_store_yet(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "threadline.yaml").write_text("features:\n  clicks: {aggregate: cuont, events: click}\n")
    told = call("doctor", "--file", str(tmp_path / "new.db"))
    assert told.code == 1
    assert re.search(r"fault +definitions", told.out)
    assert told.out.count("cuont") == 1
    assert "not looked at" in told.out
    assert [each.name for each in tmp_path.iterdir()] == ["threadline.yaml"]


def test_a_refold_of_a_store_that_is_not_there_makes_none(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("refold", "--file", str(tmp_path / "typo.db"))
    assert told.code == 1
    assert "there is no store at" in told.err
    assert list(tmp_path.iterdir()) == []


def test_hints_name_commands_as_they_are_called_here(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("feature-top", "no_such_feature")
    assert "`feature-definitions` lists them all" in told.err
    with threadline.open(store):
        assert "what only reads can work beside it" in call("tag", "user_id:42", "--add", "vip").err


def test_a_sign_that_the_terminal_lacks_and_a_name_that_is_no_text_stop_nothing(store: Path) -> None:
    program = [sys.executable, "-m", "threadline"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*program, "settings"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2013" in done.stdout
    rows = os.fsencode(store.parent) + b"/rows-\xff.jsonl"
    with open(rows, "w") as file:
        file.write('{"who": "7", "when": "2025-01-01"}\n{"who": "7", "when": "soon"}\n')
    arguments = [b"--type", b"click", b"--time", b"when", b"--user-id", b"who"]
    done = subprocess.run(
        [*map(os.fsencode, program), b"import", rows, *arguments], env=os.environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"1 accepted" in done.stdout
    assert b"1 rejected" in done.stdout


def test_the_doctor_says_which_clock_may_be_wrong(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with threadline.open(tmp_path / "x.db", clock=lambda: system_clock() + 2 * DAY) as tl:
        tl.track("42", "click")
    told = call("doctor", "--file", str(tmp_path / "x.db"))
    assert told.code == 1
    assert "which is still to come by this clock" in " ".join(told.out.split())


def test_the_doctor_creates_nothing(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("doctor", "--file", str(tmp_path / "new.db"))
    assert told.code == 0
    assert "does not exist yet" in " ".join(told.out.split())  # however long the path is, and lines are wrapped
    assert list(tmp_path.iterdir()) == []


SENTINEL = "c2VudGluZWwtc2VudGluZWw"
"""Part of every secret that the settings below have."""

SECRET_SETTINGS = {
    each.name: f"whsec_{SENTINEL}{9 * 'A'}" if each.name == "webhook_secrets" else f"{SENTINEL}-long-enough-for-all"
    for each in describe()
    if each.is_secret
}
COMMANDS_THAT_TELL = (
    ("settings",), ("settings", "--json"), ("settings", "--markdown"), ("doctor",), ("catalogue",), ("verify",),
    ("migrate",), ("backup", "/nowhere/b.db"), ("move", "x.db", "memory:"), ("person", "user_id:42"), ("people",),
)  # fmt: skip


def test_the_settings_that_hold_secrets_are_declared_so() -> None:
    assert set(SECRET_SETTINGS) >= {"write_keys", "tokens", "jwt_secret", "webhook_secrets"}
    for each in describe():
        if each.name.endswith(("_secret", "_secrets", "_token", "_password")):
            assert each.is_secret, each.name


@pytest.mark.parametrize(
    "addresses",
    [
        {},
        {"store": f"postgresql://ada:{SENTINEL}/@%zz@127.0.0.1:1/d?password={SENTINEL}&sslpassword=@{SENTINEL}"},
        {"store": f"postgresql://ada:{SENTINEL}/x@127.0.0.1:1/d"},
        {"store": f"postgresql://127.0.0.1:1/d?password={SENTINEL}", "cache": f"redis://:{SENTINEL}@127.0.0.1:1/0"},
        {"store": f"postgresql://ada:{SENTINEL}%zz@127.0.0.1:1/d", "jwt_keys": f"https://ada:{SENTINEL}@127.0.0.1:1/k"},
        {"store": f"dynamodb://ada:{SENTINEL}@people"},
        {"cache": f"http://ada:{SENTINEL}@127.0.0.1:1/0"},
        {"port": "x"},
    ],
)
def test_no_command_shows_a_secret(  # type: ignore[no-untyped-def]
    addresses: dict[str, str], store: Path, call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: whatever is declared a secret, and whoever logs in by an address, stands in no output of any command."""
    for name, value in {**SECRET_SETTINGS, "retry_seconds": "0", **addresses}.items():
        monkeypatch.setenv(PREFIX + name.upper(), value)
    for arguments in COMMANDS_THAT_TELL:
        told = call(*arguments)
        assert told.out + told.err, arguments
        assert SENTINEL not in told.out + told.err, arguments
    if "port" not in addresses:
        shown = {each["setting"]: each["now"] for each in json.loads(call("settings", "--json").out)}
        assert [name for name, now in shown.items() if now == "(hidden)"] == [
            PREFIX + name.upper() for name in SECRET_SETTINGS
        ]


@pytest.mark.parametrize("command", ["serve", "work"])
def test_what_runs_on_shows_no_secret_either(command: str, store: Path) -> None:
    environment = os.environ | {PREFIX + name.upper(): value for name, value in SECRET_SETTINGS.items()}
    program = [sys.executable, "-m", "threadline", command, *(("--port", "0") if command == "serve" else ())]
    process = subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    process.terminate()
    said = first + process.communicate(timeout=60)[0]
    assert '"ready":true' in said
    assert SENTINEL not in said


def test_the_catalogue_is_listed(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("catalogue").out
    for name in ("features", "campaign_ignored", "merge_preview", "anonymous_id"):
        assert name in told


def test_a_fault_of_the_program_is_a_message_too(call, monkeypatch: pytest.MonkeyPatch, store: Path) -> None:  # type: ignore[no-untyped-def]
    from threadline.engine.ask import Asker

    def person(self: Asker, workspace: str, ref: str, **more: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Asker, "person", person)
    told = call("person", "user_id:42")
    assert told.code == 1
    assert "RuntimeError: a bug" in told.err
    assert "--traceback" in told.err
    with pytest.raises(RuntimeError, match="a bug"):
        call("--traceback", "person", "user_id:42")


HOSTILE = "a\x1b[31mred\x07\x7f\x9b2J:x:[bold]"
"""What clears a screen, rings, and looks like markup of ours."""


def test_what_producers_send_does_not_steer_the_terminal(  # type: ignore[no-untyped-def]
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADLINE_STORE", str(tmp_path / "x.db"))
    with threadline.open(tmp_path / "x.db") as tl:
        tl.identify(HOSTILE, {"name": HOSTILE, HOSTILE: 1})
        tl.track(HOSTILE, "click", {HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}})
    rows = [{"who": HOSTILE, "when": "2025-01-01", "what": "click"}, {"who": "b", "when": HOSTILE, "what": HOSTILE}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "map.yaml").write_text("type: {column: what}\ntime: when\nuser_id: who\nproperties: '*'\n")
    imported = ("import", str(tmp_path / "rows.jsonl"), "--map", str(tmp_path / "map.yaml"))
    said = [
        call(*imported),
        *(call(name, f"user_id:{HOSTILE}") for name in ("person", "events", "features", "memory")),
        call("rejected"), call("verify"), call("people"), call("feed"), call("person", f"user_id:{HOSTILE}x"),
        call(*imported, "--dry-run"), call("person", f"user_id:{HOSTILE}", "--json"),
    ]  # fmt: skip
    assert json.loads(said[-1].out)["identifiers"][0]["value"] == HOSTILE
    for told in said:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", told.out + told.err), told.out + told.err
    assert "a\\x1b[31mred\\x07\\x7f\\x9b2J:x:[bold]" in said[1].out
    assert "a\\x1b[31mred" in said[0].out


def test_messages_are_printed_as_they_are(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("person", "user_id:1", "--file", str(tmp_path / ":x: [red].db"))
    assert ":x: [red].db" in told.err


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
