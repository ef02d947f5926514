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


def test_a_value_that_has_grown_weighs_what_it_weighs_when_it_is_put_again() -> None:
    cache: TwoGenerationCache[str, list[int]] = TwoGenerationCache(10, len)
    grown = [0] * 2
    cache.put("grown", grown)
    cache.put("other", [0] * 2)
    grown.extend([0] * 7)
    cache.put("grown", grown)
    cache.put("third", [0] * 2)
    assert cache.peek("other") is None


def test_a_value_that_was_forgotten_leaves_its_weight() -> None:
    cache: TwoGenerationCache[str, list[int]] = TwoGenerationCache(10, len)
    for _ in range(5):
        cache.put("first", [0] * 9)
        cache.forget("first")
    cache.put("second", [0] * 9)
    cache.put("third", [0])
    assert cache.peek("second") is not None
    cache.put("fourth", [0] * 9)
    cache.put("fifth", [0] * 9)
    assert cache.peek("second") is None
