"""The laws of a store's items: versions, conditions, all or nothing, order."""

# ruff: noqa: D102 - a law is said by its name

from __future__ import annotations

from itertools import product

import pytest

from threadline.kernel.limits import BATCH_WRITES_MAX, ITEM_BEGINS_MAX, ITEM_BYTES_MAX
from threadline.kernel.store import Batch, Check, Delete, Item, Key, Put, Range, Store, scan_pages
from threadline.testing.store_cases import KEY, SORTS, StoreOpening, at_once, entry, put, refusals


class ItemLaws(StoreOpening):
    """Items: versions, conditions, atomicity, order."""

    def test_versions_start_at_one_and_grow_by_one(self, store: Store) -> None:
        for version in (1, 2, 3):
            put(store, KEY, b"%d" % version)
            assert store.get([KEY]) == [(KEY, version, b"%d" % version)]
        assert store.commit([Batch(writes=[Delete(KEY)])]) == [None]
        assert store.get([KEY]) == [None]
        put(store, KEY)
        assert store.get([KEY]) == [(KEY, 1, b"v")]

    @pytest.mark.parametrize("expected", [0, None])
    def test_an_item_begins_with_the_version_that_its_first_put_names(self, store: Store, expected: int | None) -> None:
        """So whoever remembers a deleted item does not take the next one under its key for it."""
        for begins in (7, ITEM_BEGINS_MAX, 1):
            assert refusals(store, Batch(writes=[Put(KEY, b"1", expected, begins)])) == [None]
            assert store.get([KEY]) == [(KEY, begins, b"1")]
            again = Put(KEY, b"2", begins if expected == 0 else None, 9)
            assert refusals(store, Batch(writes=[again])) == [None]
            assert store.get([KEY]) == [(KEY, begins + 1, b"2")]
            late, last = Put(KEY, b"3", begins), Delete(KEY, begins + 1)
            assert refusals(store, Batch(writes=[late]), Batch(writes=[last])) == ["version", None]

    @pytest.mark.parametrize("kind", ["put", "delete", "check"])
    def test_a_write_goes_through_on_the_expected_version_only(self, store: Store, kind: str) -> None:
        # All cases on one store, each with a key of its own: on some stores a new one takes a tenth of a second.
        for version, expected in product((0, 1, 2), (None, 0, 1, 2, 3)):
            key = KEY._replace(sort=f"{version}/{expected}")
            for _ in range(version):
                put(store, key, b"old")
            before = store.get([key])
            after: list[Item | None]
            if kind == "put":
                outcome = refusals(store, Batch(writes=[Put(key, b"new", expected)]))
                after = [Item(key, version + 1, b"new")]
            elif kind == "delete":
                outcome, after = refusals(store, Batch(writes=[Delete(key, expected)])), [None]
            else:
                outcome, after = refusals(store, Batch(writes=[Check(key, expected or 0)])), list(before)
            holds = (expected or 0) == version if kind == "check" else expected is None or expected == version
            assert outcome == [None if holds else "version"], (version, expected)
            assert store.get([key]) == (after if holds else before), (version, expected)

    @pytest.mark.parametrize("index", [0, 1, 2])
    def test_nothing_of_a_refused_batch_is_written(self, store: Store, index: int) -> None:
        put(store, KEY)
        put(store, Key("t", "gone"))
        for refused in (Put(KEY, b"x", 2), Delete(KEY, 2), Check(KEY, 2), Check(KEY, 0)):
            writes: list[Put | Delete | Check] = [Put(Key("t", "new"), b"n"), Delete(Key("t", "gone"))]
            writes.insert(index, refused)
            assert refusals(store, Batch([entry(1)], writes)) == ["version"], refused
            assert store.get([KEY, Key("t", "new"), Key("t", "gone")]) == [
                (KEY, 1, b"v"),
                None,
                (Key("t", "gone"), 1, b"v"),
            ], refused
            assert (store.feed(), store.seen([entry(1).id])) == ([], {}), refused

    def test_batches_of_a_call_are_sequential_and_independent(self, store: Store) -> None:
        outcome = refusals(
            store,
            Batch([entry(1)], [Put(KEY, b"1", 0)]),
            Batch([entry(2)], [Put(KEY, b"2", 0)]),
            Batch([entry(3)], [Put(KEY, b"3", 1)]),
            Batch([entry(3)], [Put(Key("t", "p"), b"")]),
            Batch([entry(4)], [Delete(KEY, 2)]),
            Batch([entry(2)], [Put(KEY, b"5", 0), Check(Key("t", "p"), 0)]),
        )
        assert outcome == [None, "version", None, "event_exists", None, None]
        assert store.get([KEY, Key("t", "p")]) == [(KEY, 1, b"5"), None]
        assert [page.entry.id for page in store.feed()] == [entry(number).id for number in (1, 3, 4, 2)]

    def test_what_builds_on_a_refused_batch_is_refused_though_its_versions_hold(self, store: Store) -> None:
        put(store, KEY)  # by another process, in place of the first batch
        first, other = Key("t", "first"), Key("t", "other")
        outcome = refusals(
            store,
            Batch([entry(1)], [Put(KEY, b"1", 0)]),
            Batch([entry(2)], [Put(KEY, b"2", 1)], builds_on=[0]),
            Batch([entry(3)], [Put(other, b"3", 0)], builds_on=[1]),
            Batch([entry(4)], [Put(first, b"4", 0)]),
            Batch([entry(4)], builds_on=[1]),
            Batch([entry(5)], [Put(first, b"5", 1)], builds_on=[3]),
            Batch(builds_on=[3]),
            Batch(builds_on=[2, 3]),
        )
        assert outcome == ["version", "version", "version", None, "event_exists", None, None, "version"]
        assert store.get([KEY, first, other]) == [(KEY, 1, b"v"), (first, 2, b"5"), None]
        assert [page.entry.id for page in store.feed()] == [entry(4).id, entry(5).id]

    def test_unconditional_writes_of_one_call_add_up(self, store: Store) -> None:
        assert refusals(store, *[Batch(writes=[Put(KEY, b"%d" % n)]) for n in range(5)]) == [None] * 5
        assert store.get([KEY]) == [(KEY, 5, b"4")]

    def test_get_answers_in_the_order_of_the_keys(self, store: Store) -> None:
        keys = [Key("t", f"p{n % 7}", f"s{n}") for n in range(700)]
        for first in range(0, 700, BATCH_WRITES_MAX):
            writes = [Put(key, key.sort.encode()) for key in keys[first : first + BATCH_WRITES_MAX]]
            assert store.commit([Batch(writes=writes)]) == [None]
        asked = [*reversed(keys), Key("t", "absent"), Key("none", "p1", "s1"), keys[3], keys[3]]
        values = [item and item.value for item in store.get(asked)]
        assert values == [*(key.sort.encode() for key in reversed(keys)), None, None, b"s3", b"s3"]
        assert store.get([]) == []

    def test_a_partition_is_ordered_by_utf8_bytes(self, store: Store) -> None:
        for sort in reversed(SORTS):
            put(store, Key("t", "p", sort), sort.encode())
            put(store, Key("t", "other", sort), b"another partition")
            put(store, Key("other", "p", sort), b"another table")
        assert list(SORTS) == sorted(SORTS, key=str.encode)
        assert [item.value.decode() for item in store.query("t", "p")] == list(SORTS)
        assert [item.value.decode() for item in store.query("t", "p", reverse=True)] == list(reversed(SORTS))

    def test_ranges_are_half_open(self, store: Store) -> None:
        for sort in SORTS:
            put(store, Key("t", "p", sort))
        for start in ("", *SORTS):
            for stop in (None, "", *SORTS):
                for reverse in (False, True):
                    sorts = [item.key.sort for item in store.query("t", "p", start, stop, 4, reverse)]
                    expected = [sort for sort in SORTS if sort >= start and (stop is None or sort < stop)]
                    assert sorts == (expected[::-1] if reverse else expected)[:4]

    def test_ranges_read_together_are_those_read_one_by_one(self, store: Store) -> None:
        for partition in ("p", "é"):
            for sort in SORTS:
                put(store, Key("t", partition, sort), sort.encode())
        put(store, Key("other", "p"))
        wanted = [
            Range(table, partition, start, stop, limit)
            for table in ("t", "other", "absent")
            for partition in ("p", "é", "nobody")
            for start, stop in (("", None), (SORTS[2], SORTS[5]), (SORTS[5], SORTS[2]), (SORTS[3], None))
            for limit in (1, 3, 100)
        ]
        together = store.ranges(wanted)
        assert together == [store.query(*key_range) for key_range in wanted]
        assert sum(map(len, together)) > 50
        assert store.ranges([]) == []
        assert store.ranges(wanted[:1] * 3) == together[:1] * 3

    def test_shards_part_a_table_exactly(self, store: Store) -> None:
        # Enough partitions that no shard stays empty where a store parts by partition, as DynamoDB does.
        keys = {Key("t", f"p{n % 71}", SORTS[n % 13]) for n in range(143)}
        both = [stored_key for key in sorted(keys) for stored_key in (key, key._replace(table="other"))]
        for first in range(0, len(both), BATCH_WRITES_MAX):
            writes = [Put(key, b"v") for key in both[first : first + BATCH_WRITES_MAX]]
            assert store.commit([Batch(writes=writes)]) == [None]
        for shards in (1, 2, 7):
            parts = [[item.key for item in scan_pages(store, "t", shard, shards)] for shard in range(shards)]
            assert sorted(key for part in parts for key in part) == sorted(keys)
            assert all(parts)
        assert list(scan_pages(store, "absent")) == []

    def test_scan_goes_on_after_a_key(self, store: Store) -> None:
        for number in range(25):
            put(store, Key("t", f"p{number % 3}", f"s{number}"))
        for shard in (0, 1):
            items, after = [], None
            while page := store.scan("t", shard, 2, after, limit=3):
                items += page
                after = page[-1].key
            assert items == store.scan("t", shard, 2)

    def test_values_come_back_as_they_were(self, store: Store) -> None:
        for value in (b"", b"\0", bytes(range(256)), b"x" * (ITEM_BYTES_MAX - 20)):
            put(store, KEY, value)
            item = store.get([KEY])[0]
            assert item is not None
            assert item.value == value

    def test_counting_up_from_many_threads_loses_nothing(self, store: Store) -> None:
        def count_up() -> None:
            done = 0
            while done < 10:
                item = store.get([KEY])[0]
                version, count = (item.version, int(item.value)) if item else (0, 0)
                done += store.commit([Batch(writes=[Put(KEY, b"%d" % (count + 1), version)])]) == [None]

        at_once(*[count_up] * 4)
        assert store.get([KEY]) == [(KEY, 40, b"40")]
