"""The page on the supply chain: its table is current, the locks have hashes, a release is the same each time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release.parts import LOCK, locked, shipped_parts
from release.sbom import PAGE, page_with, sbom

ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", re.MULTILINE)


def names(lock: str) -> set[str]:
    return {name.lower().replace("_", "-") for name in _PIN.findall((ROOT / "requirements" / lock).read_text())}


def test_the_table_on_the_page_is_what_the_lock_installs() -> None:
    assert page_with(shipped_parts()) == PAGE.read_text(), "python -m release --page"


@pytest.mark.parametrize("lock", [path.name for path in sorted((ROOT / "requirements").iterdir())])
def test_every_part_of_a_lock_has_a_hash(lock: str) -> None:
    entries = re.split(r"^(?=[A-Za-z0-9._-]+(?:\[[^]]*\])?==)", (ROOT / "requirements" / lock).read_text(), flags=re.M)
    assert len(entries) > 5
    assert [entry.split()[0] for entry in entries[1:] if "--hash=sha256:" not in entry] == []


def test_the_bill_names_what_the_lock_of_an_installation_has() -> None:
    """The lock is resolved by uv, the bill by the parts' own metadata."""
    parts = shipped_parts()
    bill = json.loads(sbom(parts, [], 0))
    installed = {each["name"] for each in bill["components"] if each["scope"] == "required"}
    extras = {part.name for part in parts if {"mail", "analytics"}.intersection(part.extras)}
    assert installed | extras <= names("run.txt")
    assert names("run.txt") - installed - extras <= names("build.txt") | {"colorama"}  # of Windows
    for each in bill["components"]:
        pin = locked()[each["name"]]
        hashes = [one["value"] for one in each["properties"] if one["name"] == "threadline:lock:sha256"]
        assert (each["version"], tuple(hashes)) == pin
        assert LOCK.read_text().count(hashes[0]) == 1
    refs = {each["bom-ref"] for each in [*bill["components"], bill["metadata"]["component"]]}
    assert {each["ref"] for each in bill["dependencies"]} == refs
    assert {ref for each in bill["dependencies"] for ref in each["dependsOn"]} <= refs


def copied(into: Path) -> Path:
    """What the repository has, with other times and in another place."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    for name in found.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, into / name)
            shutil.copymode(ROOT / name, into / name)
            os.utime(into / name, (1, 1))
    return into


def released(tree: Path, epoch: str = "1700000000") -> Path:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "PYTHONPATH": f"{tree}:{tree / 'src'}"}
    made = subprocess.run(
        [sys.executable, "-m", "release"], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    return tree / "dist"


@pytest.mark.slow
def test_two_builds_of_one_tree_have_the_same_bytes_and_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("git is missing: what the repository has is listed by it")
    one, other = released(copied(tmp_path / "one")), released(copied(tmp_path / "elsewhere" / "other"))
    assert (one / "SHA256SUMS").read_text() == (other / "SHA256SUMS").read_text()
    version = json.loads(next(one.glob("*.cdx.json")).read_text())["metadata"]["component"]["version"]
    wheel = one / f"threadline-{version}-py3-none-any.whl"
    check = ["sha256sum", "--check", "SHA256SUMS"]
    told = subprocess.run(check, cwd=one, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout.count(": OK")) == (0, 3)
    bill = json.loads(next(one.glob("*.cdx.json")).read_text())
    named = {each["name"]: each["value"] for each in bill["metadata"]["component"]["properties"]}
    assert named[f"threadline:sha256:{wheel.name}"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.write_bytes(data)
    assert subprocess.run(check, cwd=one, capture_output=True, check=False).returncode == 1
