"""A program on Spark, in PySpark's own venv, started as quickly as it can be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = os.environ.get("THREADLINE_TEST_SPARK_PYTHON") or str(ROOT / ".venv-spark/bin/python")
QUICK = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 pyspark-shell",
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Starting takes a short job most of its time."""


def need() -> None:
    """Skips, and says why, where there is no PySpark."""
    if os.environ.get("THREADLINE_TEST_SPARK") == "0":
        pytest.skip("THREADLINE_TEST_SPARK=0 leaves Spark out")
    if not Path(PYTHON).exists():
        pytest.skip(f"PySpark has a venv of its own, which is not at {PYTHON}")


def run(driver: Path, *arguments: str, timeout_seconds: float = 3_600) -> str:
    """What a driver prints."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    ended = subprocess.run(
        [PYTHON, str(driver), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
        env={**os.environ, **QUICK, "PYTHONPATH": path},
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]
    return ended.stdout
