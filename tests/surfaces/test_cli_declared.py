"""The command line knows what is declared beside the store, and answers what Python answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import threadline
from threadline.app import composition
from threadline.kernel.operation import Operation
from threadline.surfaces.cli.listing import command_name
from threadline.surfaces.cli.program import run
from threadline.surfaces.operation_calls import method_name, path_names, shown
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
timezone: Europe/Rome
features:
  clicks: {aggregate: count, events: click}
segments:
  buyers: {when: {field: features.monetary_total, greater_than: 1}}
leaderboards:
  spenders: {score: features.monetary_total}
points:
  tables: [{version: 2, from: "2026-06-01T00:00:00Z", earn: {click: 8}}]
streaks:
  clicking: {events: click, cadence: day}
memory:
  shoe_size: {events: purchase_completed, fact: preference/shoe_size, value: size}
destinations:
  crm: {url: "https://crm.example.com/hooks", secrets: ["env:CRM_SECRET"]}
rules:
  large:
    version: 1
    conditions: {field: event.properties.total, greater_than: 20}
    actions: [{tag: {tag: large}}]
"""
NAMES = {"id": "user_id:42", "segment": "buyers", "type": "preference", "key": "shoe_size"}
"""What parameters of a path stand for, unless the path says otherwise."""
OF_PATHS = {
    "/v1/segments/": "buyers",
    "/v1/leaderboards/": "spenders",
    "/leaderboards/": "spenders",
    "/v1/features/": "clicks",
    "/v1/rules/": "large",
    "/rules/": "large",
}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def arguments(path: str, names: tuple[str, ...]) -> list[str]:
    """A value for each parameter of a path."""
    found = []
    for name in names:
        before = path.partition(f"{{{name}}}")[0]
        named = [value for prefix, value in OF_PATHS.items() if before.endswith(prefix)]
        found.append(named[-1] if named else NAMES.get(name, "none"))
    return found


def by_path_alone(operation: Operation) -> bool:
    """Whether nothing but the parameters of the path has to be given."""
    needed = {field.encode_name for field in msgspec.structs.fields(operation.params) if field.required}
    return needed <= set(path_names(operation))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THREADLINE_STORE", str(tmp_path / "x.db"))
    monkeypatch.setenv("CRM_SECRET", "whsec_" + "c2VjcmV0" * 4)
    (tmp_path / "threadline.yaml").write_text(DEFINITIONS)
    with threadline.open(tmp_path / "x.db") as tl:
        tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR", "size": 41}, key="order-1")
        tl.track("42", "click", key="click-1")
    return tmp_path / "x.db"


def said(path: list[str], capfd: pytest.CaptureFixture[str]) -> Any:
    capfd.readouterr()
    code = run(composition, [*path, "--json"])
    found = capfd.readouterr()
    return _timeless(json.loads(found.out)) if code == 0 else json.loads(found.err)["detail"]


def called(tl: Threadline, operation: Operation) -> Callable[..., Any]:
    at = tl if operation.group is None else getattr(tl, operation.group.name)
    method: Callable[..., Any] = getattr(at, method_name(operation))
    return method


def answered(tl: Threadline, operation: Operation, values: list[str]) -> Any:
    try:
        return _timeless(called(tl, operation)(*values))
    except threadline.ThreadlineError as error:
        return str(error)


def _timeless(value: Any) -> Any:
    """An answer in which every instant is the same: the two are asked one after the other."""
    return json.loads(_MOMENT.sub("then", msgspec.json.encode(value).decode()))


@pytest.mark.slow
def test_what_reads_answers_the_same_on_the_command_line_as_in_python(
    store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with threadline.open(store, readonly=True) as tl:
        operations = tl.engine.catalogue.operations
        both = shown(operations, "cli").keys() & shown(operations, "python").keys()
        reading = [each for each in operations if each.name in both and each.method == "GET" and by_path_alone(each)]
        reading = [each for each in reading if not each.media_type]  # a stream goes into a file
        assert len(reading) >= 30
        for operation in reading:
            values = arguments(operation.path, path_names(operation))
            wanted = answered(tl, operation, values)
            got = said([*command_name(operation).split(), *values], capfd)
            assert without_query(got) == without_query(wanted), operation.name


def without_query(answer: Any) -> Any:
    """An answer without its SQL, in which the instant stands at which it was asked."""
    return {name: each for name, each in answer.items() if name != "sql"} if isinstance(answer, dict) else answer


def test_what_is_declared_is_known_on_the_command_line(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (member,) = said(["segments", "members", "buyers"], capfd)["members"]
    assert said(["segments", "of", "user_id:42"], capfd)["segments"][0]["segment"] == "buyers"
    assert said(["leaderboards", "top", "spenders"], capfd)["places"][0]["person"] == member["person"]
    assert [each["name"] for each in said(["segments", "list"], capfd)["segments"]] == ["buyers"]


def test_help_tells_what_holds_where_an_option_is_not_given(capfd: pytest.CaptureFixture[str]) -> None:
    for verb in ("feed", "of"):
        assert run(composition, ["events", verb, "--help"]) == 0
        assert re.search(r"--limit INTEGER +How many on a page\. Default: 100\.", capfd.readouterr().out)


def test_what_has_to_be_given_is_named(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command, lacks in ((("people", "split"), "identifiers"), (("quarantine", "review"), "join")):
        assert run(composition, [*command, "user_id:42"]) == 2
        assert f"`{lacks}` is missing" in capfd.readouterr().err
    with threadline.open("memory:") as tl, pytest.raises(TypeError, match="'points'"):
        tl.points.spend("user_id:42")  # type: ignore[call-arg]
