"""Whether a lake is the log: every file as the manifest says, every event of the log in one row and equal."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import NamedTuple

import msgspec

from threadline.engine.folding.packing import encode_event, unpack_event
from threadline.exports.lake.files import ids_digest
from threadline.exports.lake.lake import EVENTS, File, Lake
from threadline.exports.lake.reading import Parts, check_log
from threadline.exports.lake.schema import RAW, pa, recorded_of
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.store import feed_pages, is_erased

_ROWS = 8_192
_PROBLEMS_MAX = 50
_HASH_BYTES = 8


class Verified(NamedTuple):
    """What was found."""

    events: int
    """Events of the log up to where the lake ends."""
    rows: int
    files: int
    problems: list[str]
    """What is wrong, in words; the first of it."""


def verify(engine: Parts, lake: Lake) -> Verified:
    """Read all files and the log, and compare them. It takes 8 bytes of memory for each event.

    An erasure that is done while it runs may look like a difference: verify again.
    """
    manifest = lake.manifest()
    check_log(engine.store, lake, manifest)
    problems: list[str] = []
    # By position: a hash of the event, taken with exclusive or: in the end what is left is what differs.
    sums = bytearray(_HASH_BYTES * (manifest.position + 1))
    rows = sum(_rows_of(lake, file, sums, problems) for file in manifest.files)
    events = 0
    for position, (_, entry) in enumerate(islice(feed_pages(engine.store), manifest.position), 1):
        if not is_erased(entry):
            events += 1
            _toggle(sums, position, _hash(unpack_event(entry)))
    empty = bytes(_HASH_BYTES)
    for position in range(1, manifest.position + 1):
        if len(problems) >= _PROBLEMS_MAX:
            break
        if sums[_HASH_BYTES * position : _HASH_BYTES * (position + 1)] != empty:
            problems.append(f"position {position}: the log and the files differ")
    if rows != events and len(problems) < _PROBLEMS_MAX:
        problems.append(f"the log has {events:,} events and the files {rows:,} rows")
    return Verified(events, rows, len(manifest.files), problems)


def _rows_of(lake: Lake, file: File, sums: bytearray, problems: list[str]) -> int:
    """Take in the events of a file; how many there are. What is wrong with the file is noted."""
    try:
        content = lake.storage.read(file.name)
    except NotFound as error:
        problems.append(str(error))
        return 0
    if hashlib.sha256(content).hexdigest() != file.sha256:
        problems.append(f"{file.name}: its content is not what the manifest says")
        return 0
    if file.table != EVENTS:
        return 0
    count, ids = 0, list[str]()
    opened = pa.parquet.ParquetFile(pa.BufferReader(content))
    for batch in opened.iter_batches(_ROWS, columns=RAW.names, use_threads=False):
        for row in batch.to_pylist():
            count += 1
            ids.append(row["id"])
            if row["workspace"] != file.workspace or not file.first <= row["position"] <= file.last:
                problems.append(f"{file.name}: position {row['position']} of {row['workspace']!r} is in the wrong file")
            else:
                _toggle(sums, row["position"], _hash(recorded_of(row)))
    if count != file.rows or opened.metadata.metadata.get(b"ids_sha256", b"").decode() != ids_digest(ids):
        problems.append(f"{file.name}: its rows are not those that it was written with")
    return count


def _hash(recorded: Recorded) -> bytes:
    about = (recorded.id, recorded.thread, recorded.sequence, recorded.recorded_at, recorded.cause)
    content = encode_event(recorded.event) + msgspec.json.encode(about)
    return hashlib.blake2b(content, digest_size=_HASH_BYTES).digest()


def _toggle(sums: bytearray, position: int, by: bytes) -> None:
    start = _HASH_BYTES * position
    sums[start : start + _HASH_BYTES] = bytes(a ^ b for a, b in zip(sums[start : start + _HASH_BYTES], by, strict=True))
