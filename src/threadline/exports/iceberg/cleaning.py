"""The removal of what no reader needs: snapshots that have expired, and files that no snapshot names."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from threadline.exports.iceberg.table import VERSION_HINT, pa
from threadline.kernel.errors import InvalidValue

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from threadline.exports.iceberg.table import LogTable


def clean(log: LogTable, keep_seconds: float = 0.0) -> int:
    """Expire snapshots older than this and delete every file of the table that no other names; how many.

    The files are listed first and deleted after a commit: what another process was about to commit when they were
    listed is refused then, and what it writes later is not on the list. So nothing is deleted that a later snapshot
    names, and what a process left behind that was killed is deleted however young it is.
    """
    listed = _listed(log.table)
    if _plain(log.table.metadata_location) not in listed:
        # Where addresses are not written alike, none would be recognised, and every file would be deleted.
        raise InvalidValue(f"{log.table.metadata_location} is not among the files of {log.table.location()}")
    log.mark()
    _expire(log.table, keep_seconds)
    log.refresh()
    gone = sorted(listed - _named(log.table))
    for path in gone:
        log.table.io.delete(path)
    return len(gone)


def _expire(table: Table, keep_seconds: float) -> None:
    oldest = datetime.fromtimestamp(time.time() - keep_seconds, UTC).timestamp() * 1_000
    current = table.current_snapshot()
    old = [
        snapshot.snapshot_id
        for snapshot in table.snapshots()
        if snapshot.timestamp_ms <= oldest and (current is None or snapshot.snapshot_id != current.snapshot_id)
    ]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()


def _listed(table: Table) -> set[str]:
    """The addresses of all files of a table."""
    scheme, path = _parts(table.location())
    io: Any = table.io
    files = io.fs_by_scheme(scheme, path.partition("/")[0] or None).get_file_info(
        pa.fs.FileSelector(path, recursive=True)
    )
    return {f"{scheme}://{file.path}" for file in files if file.is_file}


def _named(table: Table) -> set[str]:
    """The addresses of the files that the newest metadata names, itself among them."""
    addresses = {table.metadata_location, f"{table.location()}/{VERSION_HINT}"}
    addresses |= {entry.metadata_file for entry in table.metadata.metadata_log}
    for snapshot in table.snapshots():
        addresses.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            addresses.add(manifest.manifest_path)
            addresses |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    return set(map(_plain, addresses))


def _plain(address: str) -> str:
    return "://".join(_parts(address))


def _parts(address: str) -> tuple[str, str]:
    """Scheme and path, beginning with the bucket if there is one; a path alone is a local file."""
    scheme, separator, path = address.partition("://")
    return (scheme, path) if separator else ("file", address)
