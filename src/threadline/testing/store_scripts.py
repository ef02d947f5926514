"""Random scripts of commits and questions, played to a store and to the memory store: the answers must be equal."""

# ruff: noqa: D102 - a law is said by its name

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put, Span, Store, erased, thread_page
from threadline.stores.memory import MemoryStore

_TABLES = st.sampled_from(("a", "b"))
_PARTITIONS = st.sampled_from(("p", "é"))
_SORTS = st.sampled_from(("-", "a", "a\0", "ä", "\uffff", "\U0001f600"))
_KEYS = st.builds(Key, _TABLES, _PARTITIONS, _SORTS)
_EXPECTED = st.sampled_from((None, None, 0, 1, 2, 3))
_WRITES = st.one_of(
    st.builds(Put, _KEYS, st.binary(max_size=4), _EXPECTED, st.sampled_from((1, 1, 3))),
    st.builds(Delete, _KEYS, _EXPECTED),
    st.builds(Check, _KEYS, st.integers(0, 2)),
)
_THREADS = st.sampled_from(("aa" * 16, "bb" * 16))
_TYPES = st.sampled_from(("x", "y", "z"))
_TIMES = st.integers(-4, 4)


@st.composite
def _entries(draw: st.DrawFn) -> LogEntry:
    # The sequence follows from the id, so that two different events never ask for one place in a thread.
    number = draw(st.integers(1, 30))
    body = draw(st.binary(max_size=3))
    if draw(st.integers(0, 9)) == 9:
        return erased(f"{number:032x}")
    return LogEntry(draw(_THREADS), number, draw(_TIMES), draw(_TYPES), f"{number:032x}", number - 15, body)


_BATCHES = st.builds(
    Batch,
    st.lists(_entries(), max_size=3),
    st.lists(_WRITES, max_size=4, unique_by=lambda write: write.key),
    builds_on=st.just(()),
)


@st.composite
def _calls(draw: st.DrawFn) -> list[Batch]:
    batches = draw(st.lists(_BATCHES, max_size=5))
    earlier = [st.lists(st.integers(0, number - 1), max_size=1 + number // 3) for number in range(1, len(batches))]
    return [*batches[:1], *(batch._replace(builds_on=draw(on)) for batch, on in zip(batches[1:], earlier, strict=True))]


_SPANS = st.builds(
    Span,
    start=st.none() | _TIMES,
    stop=st.none() | _TIMES,
    types=st.frozensets(_TYPES),
    after=st.none() | st.tuples(_TIMES, st.integers(0, 31)),
    limit=st.integers(1, 8),
    reverse=st.booleans(),
)
_STEPS = st.one_of(
    st.tuples(st.just("commit"), _calls()),
    st.tuples(st.just("spans"), st.lists(_THREADS, max_size=3), _SPANS),
    st.tuples(
        st.just("query"),
        _TABLES,
        _PARTITIONS,
        st.just("") | _SORTS,
        st.none() | _SORTS,
        st.integers(1, 4),
        st.booleans(),
    ),
    st.tuples(st.just("get"), st.lists(_KEYS, max_size=5)),
    st.tuples(st.just("erase"), st.lists(st.integers(1, 30).map("{:032x}".format), max_size=5)),
)
SCRIPTS = st.lists(_STEPS, min_size=3, max_size=25)


def assert_the_same_as_in_memory(store: Store, script: list[tuple[Any, ...]]) -> None:
    """Play a script to a store, which is closed at the end, and to the memory store."""
    model = MemoryStore()
    try:
        for name, *arguments in script:
            result, expected = answer(store, name, arguments), answer(model, name, arguments)
            assert result == expected, (name, arguments)
        assert everything(store) == everything(model)
    finally:
        store.close()


class StoreScripts:
    """The differential law. ``open`` comes from the backend's test class."""

    def open(self, folder: Path) -> Store:
        """A store in this folder, empty if the folder is."""
        raise NotImplementedError

    @settings(
        max_examples=60,
        deadline=None,
        # The class holds no state, so sharing the test between backends is sound.
        suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
    )
    @given(SCRIPTS)
    def test_a_script_means_the_same_as_to_the_memory_store(self, script: list[tuple[Any, ...]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            assert_the_same_as_in_memory(self.open(Path(folder)), script)


def answer(store: Store, name: str, arguments: list[Any]) -> Any:
    """What a store answers to one step; of a refusal only the reason, for its wording is each store's own."""
    result = getattr(store, name)(*arguments)
    return [refusal and refusal.reason for refusal in result] if name == "commit" else result


def everything(store: Store) -> dict[str, Any]:
    """All that a store holds, in one comparable value."""
    feed = [page.entry for page in store.feed()]
    return {
        "items": sorted(item for table in ("a", "b") for shard in (0, 1) for item in store.scan(table, shard, 2)),
        "feed": feed,
        "found": store.find([entry.id for entry in feed]),
        "seen": store.seen([f"{number:032x}" for number in range(32)]),
        "threads": {thread: thread_page(store, thread) for thread in {entry.thread for entry in feed}},
    }
