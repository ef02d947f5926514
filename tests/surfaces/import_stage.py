"""Tables to import, in every form of file, and an engine to import them into."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore
from threadline.surfaces.importing.recording import Summary
from threadline.surfaces.importing.rows import Plan
from threadline.wire.table import parse_mapping

NOW = 1_767_225_600 * SECOND
CATALOGUE = Catalogue(discover(definitions=Definitions()), rules())
MAPPING = {
    "type": "purchase_completed",
    "time": "day",
    "user_id": "customer",
    "properties": {"total": {"column": "dollars", "number": True}, "currency": {"value": "USD"}},
    "key": ["order"],
}


def engine() -> Engine:
    return Engine(MemoryStore(), CATALOGUE, lambda: NOW)


def plan(path: Path, **changes: Any) -> Plan:
    return Plan(path, parse_mapping(MAPPING | changes), "default", "import")


def row(number: int) -> dict[str, str]:
    return {
        "order": f"o{number}",
        "customer": f"{number % 7 + 1}",
        "day": f"2025-03-{number % 28 + 1:02}",
        "dollars": "1.25",
    }


def csv_text(rows: list[dict[str, str]]) -> str:
    lines = [",".join(row(0)), *(",".join(each.values()) for each in rows)]
    return "\n".join(lines) + "\n"


def write_csv(path: Path, count: int) -> Path:
    path.write_text(csv_text([row(number) for number in range(count)]))
    return path


def counts(summary: Summary) -> tuple[int, int, int, int, int]:
    return (summary.skipped, summary.accepted, summary.duplicates, summary.conflicts, summary.rejected)


def events_in(engine: Engine) -> int:
    count, cursor = 0, ""
    while page := engine.log.feed(cursor):
        count, cursor = count + len(page), page[-1].cursor
    return count


def asked(engine: Engine, operation: str, **params: Any) -> Any:
    declared = next(each for each in engine.catalogue.operations if each.name == operation)
    return declared.run(Context(engine, "default", NOW, "operator"), declared.params(**params))


# --- forms of files ---------------------------------------------------------------------------


def write_csv_zipped(path: Path) -> Path:
    path = path / "rows.csv.gz"
    path.write_bytes(gzip.compress(csv_text([row(number) for number in range(20)]).encode()))
    return path


def write_tsv(path: Path) -> Path:
    path = path / "rows.tsv"
    path.write_text(csv_text([row(number) for number in range(20)]).replace(",", "\t"))
    return path


def write_json_lines(path: Path) -> Path:
    path = path / "rows.jsonl"
    path.write_text("\n\n".join(json.dumps(row(number)) for number in range(20)))
    return path


def write_json_lines_zipped(path: Path) -> Path:
    path = path / "rows.ndjson.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(row(number)) for number in range(20)).encode()))
    return path


def write_parquet(path: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([row(number) for number in range(20)]), path, row_group_size=6)
    return path


OPTIONS = [
    "--type",
    "purchase_completed",
    "--time",
    "day",
    "--user-id",
    "customer",
    "--property",
    "total=dollars:number",
    "--key",
    "order",
]
