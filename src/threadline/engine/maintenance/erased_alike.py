"""What is erased in a store is erased in its copy: a copy follows the feed, which never comes back to an event."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.kernel.store import ERASED_DIGEST, FeedEntry, Store, is_erased


def erased_alike(source: Store, target: Store) -> Iterator[FeedEntry]:
    """The whole feed of the source; what of it is erased, and is not in the target, is erased there on the way."""
    cursor, count = "", 0
    while page := source.feed(cursor):
        cursor = page[-1].cursor
        gone = [each.entry.id for each in page if is_erased(each.entry)]
        known = target.seen(gone) if gone else {}
        if there := [id for id, digest in known.items() if digest != ERASED_DIGEST]:
            count += target.erase(there)
        yield from page
    if count:
        target.purge()
