"""The Python API is known to type checkers and to `help`: every operation, every parameter, every answer."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from threadline.app import operations
from threadline.kernel.operation import Operation
from threadline.surfaces.operation_calls import path_names
from threadline.surfaces.python.client import Client
from threadline.surfaces.python.embedded import Threadline
from threadline.surfaces.python.methods import by_group

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests/clients/typed"


def methods() -> Iterator[tuple[str, Operation]]:
    """Where a client has which operation, such as `segments.members`."""
    for group, members in by_group(operations()):
        for name, operation in members.items():
            yield (name if group is None else f"{group.name}.{name}"), operation


def sample(awaited: bool) -> str:
    """A program that calls every operation with the parameters of its example."""
    lines = [f"from threadline import {'AsyncClient' if awaited else 'Client, Threadline'}", ""]
    lines.append(
        "async def calls(shop: AsyncClient) -> None:" if awaited else "def calls(shop: Client | Threadline) -> None:"
    )
    for name, operation in methods():
        given: dict[str, Any] = {} if operation.example is None else msgspec.to_builtins(operation.example)
        required = [field.encode_name for field in msgspec.structs.fields(operation.params) if field.required]
        assert set(required) <= set(given), f"{operation.name}: an example has every parameter that is required"
        path = [repr(given.pop(parameter)) for parameter in path_names(operation)]
        named = [f"{parameter}={value!r}" for parameter, value in given.items() if value is not None]
        lines.append(f"    {'await ' if awaited else ''}shop.{name}({', '.join([*path, *named])})")
    return "\n".join([*lines, ""])


@pytest.mark.slow
def test_programs_that_use_every_operation_pass_mypy_strict_and_wrong_names_fail(tmp_path: Path) -> None:
    wrong = (PROJECT / "wrong.py").read_text().split("\n")
    expected = {(number, line.partition("# error: ")[2]) for number, line in enumerate(wrong, 1) if "# error: " in line}
    assert len(expected) > 8
    for awaited in (False, True):
        (tmp_path / f"every_operation_{awaited}.py").write_text(sample(awaited))
    files = [*PROJECT.glob("*.py"), *tmp_path.glob("*.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert {(int(line), code) for _, line, code in found} == expected, done.stdout + done.stderr
    assert {Path(file).name for file, _, _ in found} == {"wrong.py"}


@pytest.fixture(params=["store", "server"])
def shop(request: pytest.FixtureRequest) -> Iterator[Threadline | Client]:
    import threadline

    opened = threadline.open("memory:") if request.param == "store" else Client("http://127.0.0.1:1")
    with opened as shop:
        yield shop


def test_every_operation_is_completed_and_documented(shop: Any) -> None:
    for path, operation in methods():
        group, _, name = path.rpartition(".")
        where = getattr(shop, group) if group else shop
        assert name in dir(where)
        assert group in dir(shop) or not group
        method = getattr(where, name)
        assert inspect.getdoc(method).startswith(operation.summary)
        assert list(inspect.signature(method).parameters)[: len(path_names(operation))] == list(path_names(operation))
        assert set(inspect.signature(method).parameters) == {
            field.encode_name for field in msgspec.structs.fields(operation.params)
        }


def test_help_has_the_meaning_and_the_default_of_parameters(shop: Any) -> None:
    assert "limit: How many on a page." in shop.alerts.list.__doc__
    assert str(inspect.signature(shop.alerts.dismiss)).startswith(
        "(id: 'str', alert: 'str', *, anyone: 'bool' = False)"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda shop: shop.events.of("ada", limt=10), "events_of: got an unexpected keyword argument 'limt'"),
        (lambda shop: shop.events.of(), "events_of: missing a required argument: 'id'"),
        (lambda shop: shop.events.of("ada", 10), "events_of: too many positional arguments"),
    ],
)
def test_a_wrong_parameter_is_a_type_error_that_names_the_operation(shop: Any, call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(shop)


@pytest.mark.parametrize("name", ["evnts", "__deepcopy__"])
def test_an_unknown_group_or_operation_is_an_attribute_error(shop: Any, name: str) -> None:
    assert not hasattr(shop, name)
    assert not hasattr(shop.events, name)
