"""Types that several threads read: none of them is first asked for by two threads at once."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import threadline
from threadline.app import catalogue

RACE = """
import sys, threading
import msgspec
from threadline.app import catalogue
sys.setswitchinterval(1e-6)
types = [
    (type, dict.fromkeys(getattr(type, "__struct_encode_fields__", ()), 1))
    for each in catalogue().operations
    for type in (each.params, each.result)
]
barrier = threading.Barrier(4)
def read():
    barrier.wait()
    for type, values in types:
        try:
            msgspec.convert(values, type)
        except msgspec.ValidationError:
            pass
threads = [threading.Thread(target=read) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print("alive")
"""


@pytest.mark.slow
def test_first_calls_of_operations_at_the_same_time_crash_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr[-2_000:]


def test_every_type_that_is_read_is_prepared() -> None:
    """By being of an operation, or by its decorator."""
    ready = {cls for each in catalogue().operations for cls in (*_structs(each.params), *_structs(each.result))}
    found = 0
    for module, tree in _modules():
        for name in _read_types(tree):
            cls = getattr(importlib.import_module(module), name, None)
            if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
                found += 1
                assert cls in ready or _is_decorated(cls), f"{module} reads {name} in any thread: make it `prepared`"
    assert found > 10


def _is_decorated(cls: type) -> bool:
    tree = ast.parse(Path(str(importlib.import_module(cls.__module__).__file__)).read_text())
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == cls.__name__
        and any(isinstance(each, ast.Name) and each.id == "prepared" for each in node.decorator_list)
        for node in ast.walk(tree)
    )


def _modules() -> Iterator[tuple[str, ast.AST]]:
    for info in pkgutil.walk_packages(threadline.__path__, "threadline."):
        if info.name.startswith("threadline.testing."):
            continue  # runs in the one thread of a test
        path = Path(threadline.__file__).parent / Path(*info.name.split(".")[1:])
        file = path / "__init__.py" if info.ispkg else path.with_suffix(".py")
        text = file.read_text()
        if "msgspec" in text and (".convert" in text or ".decode" in text):  # what `_read_types` looks for
            yield info.name, ast.parse(text)


def _read_types(tree: ast.AST) -> Iterator[str]:
    """The names given to `msgspec.convert` and to ``decode`` as types."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        given = [each.value for each in node.keywords if each.arg == "type"] if node.func.attr == "decode" else []
        if node.func.attr == "convert":
            given = node.args[1:2]
        for each in given:
            yield from (inner.id for inner in ast.walk(each) if isinstance(inner, ast.Name))


def _structs(type: Any) -> set[Any]:
    """The Structs that a type is made of."""
    found: set[Any] = set()
    todo: list[Any] = [msgspec.inspect.type_info(type)]
    while todo:
        info = todo.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in found:
                continue
            found.add(info.cls)
            todo += [field.type for field in info.fields]
        for name in ("type", "item_type", "key_type", "value_type", "types", "item_types"):
            inner = getattr(info, name, None)
            todo += (
                inner if isinstance(inner, tuple | list) else [inner] if isinstance(inner, msgspec.inspect.Type) else []
            )
    return found
