"""Files that count no more, or never did, are removed: what was erased is not to lie in any of them."""

from __future__ import annotations

import time

from msgspec.structs import replace

from threadline.exports.lake.lake import Lake

READERS_SECONDS = 3_600.0
"""How long a file that compaction has replaced stays for those who read the manifest before."""
SWEEP_SECONDS = 3_600.0
"""Between two looks for files that no manifest names. A sync that was killed has left them."""
_UNNAMED_SECONDS = {"raw/": 3_600.0, "curated/": 24 * 3_600.0, ".unfinished-": 3_600.0}
"""What a name begins with -> the age from which no process at work is about to put such a file into the manifest."""


def clean(lake: Lake, now: float | None = None) -> int:
    """Remove what is obsolete, and now and then what no manifest names; how many files. It may be killed anywhere."""
    now = time.time() if now is None else now
    manifest = lake.manifest()
    old = (item.name for item in manifest.obsolete if not item.since or item.since <= now - READERS_SECONDS)
    # A file that is written again, with the same content, has the name that it had.
    named = {file.name for file in manifest.files}
    due = [name for name in old if name not in named]
    sweeping = manifest.swept_at <= now - SWEEP_SECONDS
    if sweeping:
        due += unnamed(lake, now)
    lake.storage.delete(due)
    if due or sweeping:
        gone = set(due)
        lake.change(
            lambda manifest: replace(
                manifest,
                obsolete=[item for item in manifest.obsolete if item.name not in gone],
                swept_at=now if sweeping else manifest.swept_at,
            )
        )
    return len(due)


def unnamed(lake: Lake, now: float) -> list[str]:
    """The files that no manifest names and that nobody is about to name."""
    listed = [
        file.name
        for prefix, seconds in _UNNAMED_SECONDS.items()
        for file in lake.storage.list(prefix)
        if file.modified <= now - seconds
    ]
    # Read after the listing: what is in it and not in this was never named, or is obsolete and was removed.
    manifest = lake.manifest()
    named = {file.name for file in manifest.files} | {item.name for item in manifest.obsolete}
    return [name for name in listed if name not in named]
