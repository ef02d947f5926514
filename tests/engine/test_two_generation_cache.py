"""The cache of two generations: what it keeps, and when what it dropped is gone."""

from __future__ import annotations

import weakref

from threadline.engine.two_generation_cache import FREED_A_PUT, TwoGenerationCache


class Value:
    """Something that tells when it is gone."""


def test_what_was_dropped_is_gone_a_few_values_with_each_that_is_put() -> None:
    size = 100
    cache: TwoGenerationCache[int, Value] = TwoGenerationCache(size)
    seen: list[weakref.ref[Value]] = []

    def put(number: int) -> None:
        value = Value()
        seen.append(weakref.ref(value))
        cache.put(number, value)

    def alive() -> int:
        return sum(each() is not None for each in seen)

    for number in range(2 * size):
        put(number)
    assert alive() == 2 * size
    put(2 * size)
    assert [cache.peek(0), cache.peek(size) is None] == [None, False]
    for number in range(2 * size + 1, 2 * size + 11):
        before = alive()
        put(number)
        assert alive() == before + 1 - FREED_A_PUT
    for number in range(2 * size + 11, 3 * size):
        put(number)
    assert alive() == 2 * size
    cache.clear()
    assert alive() == 0
