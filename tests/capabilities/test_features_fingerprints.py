"""Fingerprints of features: what folds people again, and what is kept once for several."""

from __future__ import annotations

import pytest

from tests.capabilities.features_mistakes import FILE
from threadline.capabilities.features import projection, read_definitions

ONE = "features:\n  visits: {aggregate: count, events: [page, screen], where: {a: 1, b: [x, y]}, window: 30d}"


def fingerprints(text: str) -> tuple[str, str]:
    features = read_definitions([(FILE, text)])
    return features.fingerprint, projection(features).fingerprint


def test_the_fingerprint_is_of_the_content_not_of_its_form() -> None:
    moved = "features:\n\n\n  visits:\n    window: 4w2d\n    where: {b: {in: [x, y]}, a: 1}\n"
    moved += "    events: [screen, page]\n    aggregate: count"
    assert fingerprints(ONE) == fingerprints(moved)
    spelt_out = moved.replace("[screen, page]", "{page: {where: {b: {in: [x, y]}}}, screen: }").replace(
        "b: [x, y], ", ""
    )
    assert fingerprints(ONE) != fingerprints(spelt_out)


@pytest.mark.parametrize(
    ("change", "refolds"),
    [
        (("30d}", "30d, description: How often.}"), False),
        (("30d}", "30d, version: 2}"), False),
        (("30d}", "30d, empty: null}"), False),
        (("30d}", "29d}"), True),
        (("a: 1", "a: true"), True),
        (("a: 1", "a: 2"), True),
        (("screen", "shop"), True),
        (("features:", "timezone: Europe/Rome\nfeatures:"), True),
        (("features:", "currencies: {default: EUR}\nfeatures:"), False),
    ],
)
def test_only_what_shapes_the_state_folds_again(change: tuple[str, str], refolds: bool) -> None:
    before, after = fingerprints(ONE), fingerprints(ONE.replace(*change))
    assert before[0] != after[0]
    assert (before[1] != after[1]) == refolds


def test_features_that_read_the_same_share_what_is_kept() -> None:
    twin = projection(read_definitions([(FILE, "features: {n: {aggregate: count, events: purchase_completed}}")]))
    assert twin.fingerprint == projection(read_definitions()).fingerprint


def test_conditions_on_one_and_on_true_are_kept_apart() -> None:
    text = "features:\n  a: {aggregate: count, events: x, where: {k: 1}}\n"
    text += "  b: {aggregate: count, events: x, where: {k: true}}"
    assert len(set(fingerprints(text))) == 2
    features = read_definitions([(FILE, text)])
    assert type(features.by_name["a"].source.feeds[0].where[0].operand) is int  # type: ignore[union-attr]
    assert type(features.by_name["b"].source.feeds[0].where[0].operand) is bool  # type: ignore[union-attr]
