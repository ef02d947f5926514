"""What deleted rows leave behind in the file, overwritten.

With ``secure_delete`` SQLite overwrites rows that are deleted and pages that become free. What it leaves are copies:
balancing a tree moves rows from page to page, and where they were becomes free space with the old bytes in it, between
a page's pointers and its rows. This is overwritten here, in the file itself, while nobody writes and the write-ahead
log is empty. A file that was written without ``secure_delete`` is rebuilt first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from threadline.stores.sqlite.driver import Connection, DatabaseFile, asking

PART_PAGES = 65_536
"""Pages that are gone through while commits wait: 256 MB in a third of a second."""
REBUILT_IN_MEMORY_BYTES_MAX = 256 * 1_024 * 1_024
_READ_PAGES_MAX = 64
_INTERIOR, _LEAVES = (2, 5), (10, 13)
"""The kinds of pages of trees, by their first byte: https://www.sqlite.org/fileformat2.html#b_tree_pages."""
_FILE_HEAD_BYTES = 100
"""Before the head of the first page."""


def rebuild(db: Connection) -> bool:
    """Write the whole file anew if it may have remains that nothing else overwrites; whether it had."""
    ask = asking(db)
    [(possible,)] = ask("SELECT possible FROM remains", ())
    if not possible:
        return False
    size = int(db.pragma("page_count")) * int(db.pragma("page_size"))
    # The copy that it makes on the way would not fit into memory.
    db.pragma("temp_store", "memory" if size <= REBUILT_IN_MEMORY_BYTES_MAX else "file")
    try:
        ask("VACUUM", ())
    finally:
        db.pragma("temp_store", "memory")
    ask("UPDATE remains SET possible = 0", ())
    return True


def overwrite(db: Connection, path: Path, first: int) -> int:
    """Overwrite the free space of the trees' pages from a number on; the number to go on from, 0 at the end.

    Nobody may write to the file meanwhile, and the write-ahead log is empty.
    """
    # The connection's cache has the pages as they were, and would write them with what is overwritten now.
    db.pragma("shrink_memory")
    count, size = int(db.pragma("page_count")), int(db.pragma("page_size"))
    roots = [1, *(root for (root,) in asking(db)("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0", ()))]
    stop = first + PART_PAGES
    with closing(DatabaseFile(path)) as file:
        wanted = (number for root in roots for number in _tree(file, size, root) if first <= number < stop)
        for number, page in _pages(file, size, sorted(wanted)):
            start, end = _free(page, number)
            if any(page[start:end]):
                file.write(bytes(end - start), (number - 1) * size + start)
    return stop if stop <= count else 0


def _tree(file: DatabaseFile, size: int, root: int) -> Iterator[int]:
    """The numbers of all pages of a tree, of which only those are read that have others below them."""
    level = [root]
    while True:
        yield from level
        # All leaves of a tree are equally deep.
        if _kind(file.read(size, (level[0] - 1) * size), level[0]) not in _INTERIOR:
            return
        level = [child for number, page in _pages(file, size, sorted(level)) for child in _children(page, number)]


def _pages(file: DatabaseFile, size: int, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """These pages, in ascending order; those that are near each other in one read."""
    first = 0
    while first < len(numbers):
        begin = numbers[first]
        beyond = bisect_left(numbers, begin + _READ_PAGES_MAX)
        block = file.read(size * (numbers[beyond - 1] - begin + 1), (begin - 1) * size)
        for number in numbers[first:beyond]:
            yield number, block[(number - begin) * size : (number - begin + 1) * size]
        first = beyond


def _head(number: int) -> int:
    return _FILE_HEAD_BYTES if number == 1 else 0


def _kind(page: bytes, number: int) -> int:
    return page[_head(number)]


def _children(page: bytes, number: int) -> Iterator[int]:
    head = _head(number)
    for cell in range(int.from_bytes(page[head + 3 : head + 5], "big")):
        at = int.from_bytes(page[head + 12 + 2 * cell : head + 14 + 2 * cell], "big")
        yield int.from_bytes(page[at : at + 4], "big")
    yield int.from_bytes(page[head + 8 : head + 12], "big")


def _free(page: bytes, number: int) -> tuple[int, int]:
    """Where the space between a page's pointers and its rows begins and ends."""
    head, kind = _head(number), _kind(page, number)
    if kind not in (*_INTERIOR, *_LEAVES):
        return 0, 0
    cells = int.from_bytes(page[head + 3 : head + 5], "big")
    end = int.from_bytes(page[head + 5 : head + 7], "big") or len(page)
    return head + (12 if kind in _INTERIOR else 8) + 2 * cells, end
