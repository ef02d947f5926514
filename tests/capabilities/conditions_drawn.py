"""Trees of conditions, values that fields hold and persons, drawn so that they often meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d")
texts = st.sampled_from(
    [
        "",
        "80",
        "80.0",
        "8e1",
        "-3",
        "0.1",
        "pro",
        "Pro",
        "plus",
        "2026-03-01",
        "2026-03-01T01:00:00+01:00",
        "2026-13-01",
        "2026-03-01T00:00:00.000001Z",
        "2026-02-28",
        "true",
        "NaN",
        "é",
        "1" * 65,
    ]
)
numbers = st.sampled_from(
    [80, 80.0, 0.1, -3, 0, 2**53, 2**53 + 1, float(2**53), 1e23, 10**18, 5e-324, -0.0]
) | st.floats(allow_nan=False, allow_infinity=False)
scalars = texts | numbers | st.booleans()
values = scalars | st.none() | st.lists(scalars | st.none(), max_size=3) | st.dictionaries(texts, scalars, max_size=2)
traits = st.dictionaries(st.sampled_from(NAMES), values)
tests = st.one_of(
    st.tuples(st.sampled_from(["equals", "not_equals", "contains", "not_contains"]), scalars),
    st.tuples(
        st.sampled_from(["greater_than", "greater_than_or_equal", "less_than", "less_than_or_equal"]), texts | numbers
    ),
    st.tuples(st.sampled_from(["starts_with", "ends_with"]), texts),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(scalars, min_size=1, max_size=4)),
    st.tuples(st.just("regex"), st.sampled_from(["^80", "p.o$", "^$", "[0-9]{4}-", "é", "(?i)PRO|plus"])),
    st.tuples(st.just("exists"), st.booleans()),
)
leaves = st.builds(lambda name, test: {"field": f"traits.{name}", test[0]: test[1]}, st.sampled_from(NAMES), tests)


def grown(depth: int) -> st.SearchStrategy[dict[str, Any]]:
    if depth == 0:
        return leaves
    below = grown(depth - 1)
    return st.one_of(
        below,
        st.lists(below, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(below, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        below.map(lambda part: {"not": part}),
    )


trees = grown(3)
