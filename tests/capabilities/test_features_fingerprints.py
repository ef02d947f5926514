"""Fingerprints of features: what folds people again, and what is kept once for several."""

from __future__ import annotations

import pytest

from tests.capabilities.features_mistakes import FILE
from threadline.capabilities.foundation.conditions import where
from threadline.capabilities.profile.features import projection, read_definitions

ONE = "features:\n  visits: {aggregate: count, events: [page, screen], where: {a: 1, b: [x, y]}, window: 30d}"


def fingerprints(text: str) -> tuple[str, str]:
    features = read_definitions([(FILE, text)])
    return features.fingerprint, projection(features).fingerprint


def test_the_fingerprint_is_of_the_content_not_of_its_form() -> None:
    moved = "features:\n\n\n  visits:\n    window: 4w2d\n    where: {b: {in: [x, y]}, a: 1}\n"
    moved += "    events: [screen, page]\n    aggregate: count"
    assert fingerprints(ONE) == fingerprints(moved)
    spelled_out = moved.replace("[screen, page]", "{page: {where: {b: [x, y]}}, screen: {where: {b: [x, y]}}}")
    spelled_out = spelled_out.replace("b: {in: [x, y]}, ", "")
    assert fingerprints(ONE) == fingerprints(spelled_out)
    assert fingerprints(ONE) != fingerprints(spelled_out.replace(", screen: {where: {b: [x, y]}}", ", screen: "))


def test_another_spelling_of_the_same_conditions_folds_nobody_again() -> None:
    short = "features: {n: {aggregate: count, events: x, where: {v: {gt: 1}, k: {eq: a}}}}"
    full = "features: {n: {aggregate: count, events: x, where: {k: a, v: {greater_than: 1}}}}"
    trees = "[{field: event.properties.v, gt: 1}, {field: event.properties.k, eq: a}]"
    trees = full.replace("{k: a, v: {greater_than: 1}}", trees)
    assert fingerprints(short) == fingerprints(full) == fingerprints(trees)


def test_a_new_meaning_of_conditions_folds_again_what_depends_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    without_shipped = "".join(f"\n  {name}: false" for name in read_definitions().names)
    before = fingerprints(ONE), fingerprints(f"features:{without_shipped}\n  n: {{aggregate: count, events: x}}")
    monkeypatch.setattr(where, "MEANING", where.MEANING + 1)
    after = fingerprints(ONE), fingerprints(f"features:{without_shipped}\n  n: {{aggregate: count, events: x}}")
    assert before[0] != after[0]
    assert before[1] == after[1]


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
    sources = [feature.source for name, feature in read_definitions([(FILE, text)]).by_name.items() if name in "ab"]
    assert len(set(sources)) == 2
