"""``python -m release``: wheel, sdist, SBOM and checksums into a folder; ``--page``: the table in the docs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from release.checksums import SUMS, checksums
from release.parts import ROOT, project, shipped_parts
from release.sbom import rewrite_page, sbom


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="an empty folder, or one that is not there")
    parser.add_argument("--page", action="store_true", help="only bring docs/supply-chain.md up to date")
    given = parser.parse_args()
    if given.page:
        rewrite_page()
    else:
        make(given.into.absolute(), _made_at())


def make(into: Path, made_at: int) -> None:
    """Make a release, dated at an instant in seconds."""
    if into.exists() and any(into.iterdir()):
        raise SystemExit(f"{into} is not empty: what is in it could end up among the checksums")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(made_at)}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if built.returncode:
        raise SystemExit(f"hatchling could not build:\n{built.stdout}{built.stderr}")
    files = sorted(into.iterdir())
    bill = into / f"threadline-{project()['version']}.cdx.json"
    bill.write_bytes(sbom(shipped_parts(), files, made_at))
    (into / SUMS).write_text(checksums([*files, bill]))


def _made_at() -> int:
    """The instant of the commit, unless SOURCE_DATE_EPOCH names another one. Refuses a tree that is no commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    if _git("status", "--porcelain"):
        raise SystemExit("there are changes that are in no commit: commit them, or set SOURCE_DATE_EPOCH to try it")
    return int(_git("log", "-1", "--format=%ct"))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {arguments[0]}: {done.stderr.strip()}; outside a clone set SOURCE_DATE_EPOCH")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
