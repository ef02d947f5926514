"""The package for Lambda: the parts of the lock, and bytecode that counts whatever date a file gets."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest

from release.lambda_package import compile_tree, requirements, write_zip

UNCHECKED = 0b01
"""The flags of bytecode that is used without a look at its source (PEP 552)."""


def tree(folder: Path) -> Path:
    made = folder / "threadline"
    made.mkdir(parents=True)
    (made / "__init__.py").write_text("VALUE = 7\n")
    (folder / "broken.py").write_text("not python(\n")
    return folder


def test_each_module_of_ours_has_bytecode_that_is_not_checked(tmp_path: Path) -> None:
    compile_tree(tree(tmp_path), sys.executable)
    [compiled] = (tmp_path / "threadline" / "__pycache__").iterdir()
    header = compiled.read_bytes()[:8]
    assert header[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(header[4:8], "little") == UNCHECKED


def test_without_bytecode_there_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no bytecode"):
        compile_tree(tree(tmp_path), "/bin/false")


def test_the_same_tree_makes_the_same_bytes_whatever_its_dates(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        folder = tree(tmp_path / name)
        compile_tree(folder, sys.executable)
        write_zip(folder, tmp_path / f"{name}.zip")
        files.append((tmp_path / f"{name}.zip").read_bytes())
    assert files[0] == files[1]
    assert "threadline/__init__.py" in zipfile.ZipFile(tmp_path / "one.zip").namelist()


def test_the_parts_are_those_of_the_lock_with_hashes_and_only_of_the_extras_that_are_wanted() -> None:
    lines = {line.partition("==")[0]: line for line in requirements({"aws"}).splitlines()}
    assert {"msgspec", "boto3", "starlette"} <= lines.keys()
    assert not {"psycopg", "pyarrow", "pytest"} & lines.keys()
    assert "pyarrow==" in requirements({"aws"}, {"pyarrow"})
    assert all("--hash=sha256:" in line for line in lines.values())
