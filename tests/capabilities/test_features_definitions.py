"""The definitions' language: what each mistake is told, what replaces what, fingerprints and the schema."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from threadline.capabilities.definitions import Definitions, schema
from threadline.capabilities.features import load_definitions, projection, read_definitions, sections
from threadline.capabilities.features.definition import AGGREGATES
from threadline.capabilities.features.loading import read_features
from threadline.kernel.errors import InvalidDefinition

FILE = "threadline.yaml"

# Each case: what is written, and the whole message.
MISTAKES: dict[str, tuple[str, str]] = {
    "unknown section": (
        "feature: {}",
        "1: top level: unknown key 'feature'; did you mean 'features'?",
    ),
    "unknown key": (
        "features:\n  spend:\n    aggregate: count\n    events: buy\n    windw: 30d",
        "5: feature 'spend': unknown key 'windw'; did you mean 'window'?",
    ),
    "misspelt aggregate key": (
        "features:\n  spend:\n    agregate: sum",
        "3: feature 'spend': unknown key 'agregate'; did you mean 'aggregate'?",
    ),
    "no aggregate": (
        "features:\n  spend:\n    events: buy",
        "3: feature 'spend' has no aggregate; add a line such as `aggregate: count`",
    ),
    "unknown aggregate": (
        "features:\n  spend: {aggregate: summ, events: buy, of: total}",
        "2: feature 'spend': unknown aggregate 'summ'; did you mean 'sum'?",
    ),
    "far from any aggregate": (
        "features:\n  spend: {aggregate: kurtosis}",
        "2: feature 'spend': unknown aggregate 'kurtosis'; choose from " + ", ".join(sorted(AGGREGATES)),
    ),
    "no events": (
        "features:\n  visits: {aggregate: count}",
        "2: feature 'visits' has no events; add `events: purchase_completed`, a list, or `events: any`",
    ),
    "no value": (
        "features:\n  spend: {aggregate: sum, events: {buy: null}}",
        "2: feature 'spend': 'sum' needs the path of a value; add `of: total`, or `value` under each event",
    ),
    "an option of others": (
        "features:\n  visits:\n    aggregate: count\n    events: page\n    currency: currency",
        "5: feature 'visits': 'count' takes no `currency`; remove it, or use one of sum, average, min, max",
    ),
    "a duration": (
        "features:\n  visits: {aggregate: count, events: page, window: 30 days}",
        "2: feature 'visits': `window`: '30 days' is not a duration; write it like 30d, 12h or 1y or lifetime",
    ),
    "a bare number of days": (
        "features:\n  visits: {aggregate: count, events: page, stale_after: 30}",
        "2: feature 'visits': `stale_after`: '30' is not a duration; write it like 30d, 12h or 1y",
    ),
    "a window too long": (
        "features:\n  visits: {aggregate: count, events: page, window: 11y}",
        "2: feature 'visits': a window is between 1m and 10y; write `lifetime` for all time",
    ),
    "unknown operator": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {above: 3}}}",
        (
            "2: feature 'visits': `where` on 'price': unknown key 'above'; choose from "
            "equals, exists, gt, gte, in, lt, lte, not"
        ),
    ),
    "null in a condition": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: null}}",
        "2: feature 'visits': `where` on 'price': compare with a value; for an absent one write `{exists: false}`",
    ),
    "a bound that is no number": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {gt: true}}}",
        "2: feature 'visits': `where` on 'price': `gt` takes a number or a text",
    ),
    "exists": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {exists: 1}}}",
        "2: feature 'visits': `where` on 'price': `exists` is true or false",
    ),
    "a ratio of one": (
        "features:\n  rate: {aggregate: ratio, numerator: has_purchased}",
        "2: feature 'rate': a ratio needs `denominator`: the name of a feature, or aggregate and events in place",
    ),
    "a ratio of something unknown": (
        "features:\n  rate: {aggregate: ratio, numerator: has_purchased, denominator: recency_day}",
        "2: feature 'rate' is built on 'recency_day', which is not declared; did you mean 'recency_days'?",
    ),
    "a ratio of texts": (
        (
            "features:\n  plan: {aggregate: last, events: page, of: plan}\n"
            "  rate: {aggregate: ratio, numerator: plan, denominator: has_purchased}"
        ),
        "3: feature 'rate' is built on 'plan', which need not be a number; build it on a count or a sum",
    ),
    "a ratio of what is empty in words": (
        (
            "features:\n  spend: {aggregate: average, events: buy, of: v,\n    empty: none yet}\n"
            "  rate: {aggregate: ratio, numerator: spend, denominator: has_purchased}"
        ),
        "3: feature 'rate' is built on 'spend', and computes with its `empty`; write a number or null",
    ),
    "a score of what is empty in words": (
        (
            "features:\n  spend: {aggregate: average, events: buy, of: v, empty: 1e3}\n"
            "  score: {aggregate: score, parts: {spend: {weight: 1, half: 1}}}"
        ),
        "2: feature 'score' is built on 'spend', and computes with its `empty`; write a number or null",
    ),
    "a ratio in place that is empty in words": (
        (
            "features:\n  rate:\n    aggregate: ratio\n    numerator: has_purchased\n"
            "    denominator: {aggregate: sum, events: buy, of: v, empty: '0'}"
        ),
        "5: feature 'rate' is built on 'rate.denominator', and computes with its `empty`; write a number or null",
    ),
    "a ratio of what is empty beyond all numbers": (
        (
            f"features:\n  spend: {{aggregate: average, events: buy, of: v, empty: {10**400}}}\n"
            "  rate: {aggregate: ratio, numerator: spend, denominator: has_purchased}"
        ),
        "2: feature 'rate' is built on 'spend', and computes with its `empty`; write a smaller number or null",
    ),
    "a circle": (
        (
            "features:\n  a: {aggregate: ratio, numerator: b, denominator: has_purchased}\n"
            "  b: {aggregate: score, parts: {a: {weight: 1, half: 1}}}"
        ),
        "2: features are built on each other in a circle: a → b → a; break it",
    ),
    "a ratio of itself": (
        "features:\n  a: &a\n    aggregate: ratio\n    numerator: has_purchased\n    denominator: *a",
        "5: feature 'a': a ratio cannot be its own `denominator`",
    ),
    "a ratio within itself": (
        (
            "features:\n  a: &a\n    aggregate: ratio\n    denominator: has_purchased\n    numerator:\n"
            "      aggregate: ratio\n      numerator: has_purchased\n      denominator: *a"
        ),
        "8: feature 'a.numerator': a ratio cannot be its own `denominator`",
    ),
    "half a character in an event": (
        'features:\n  a: {aggregate: count,\n    events: "\\ud800"}',
        "3: this text holds half a character (\\ud800 to \\udfff); write the whole one",
    ),
    "half a character in what is empty": (
        'features:\n  a: {aggregate: last, events: x, of: v, empty: "x\\udfff"}',
        "2: this text holds half a character (\\ud800 to \\udfff); write the whole one",
    ),
    "half a character in a name": (
        '"\\ud83d": {}',
        "1: this text holds half a character (\\ud800 to \\udfff); write the whole one",
    ),
    "a feature that another needs": (
        "features:\n  recency_days: false",
        (
            "shipped.yaml: feature 'engagement_score' needs 'recency_days', which threadline.yaml:2 leaves out; "
            "leave out 'engagement_score' as well, or declare it anew"
        ),
    ),
    "leaving out what does not ship": (
        "features:\n  recency_day: false",
        "2: feature 'recency_day' does not ship and cannot be left out; did you mean 'recency_days'?",
    ),
    "a name": (
        "features:\n  Spend-30: {aggregate: count, events: page}",
        "2: 'Spend-30' is not a valid feature name; use lower-case letters, digits and _, such as spend_30d",
    ),
    "a key twice": (
        "features:\n  a: {aggregate: count, events: page}\n  a: {aggregate: any, events: page}",
        "3: `features`: 'a' is listed twice; keep one",
    ),
    "no mapping": (
        "features:\n  - spend",
        "2: `features` must be a mapping, `key: value` on lines of its own",
    ),
    "no YAML": (
        "features:\n  a: [1, 2",
        "2: this is not YAML: expected ',' or ']', but got '<stream end>'",
    ),
    "an event of ours": (
        "features:\n  a: {aggregate: count, events: threadline.timer_fired}",
        "2: feature 'a': `events`: 'threadline.timer_fired' is an event of Threadline's own and feeds no features",
    ),
    "any beside others": (
        "features:\n  a: {aggregate: count, events: [any, page]}",
        "2: feature 'a': `any` stands alone; remove the other events, or remove any",
    ),
    "an unknown option of any": (
        "features:\n  a: {aggregate: count, events: {any: {nonsense: 5}}}",
        "2: feature 'a', event 'any': unknown key 'nonsense'; choose from sign, value, where",
    ),
    "any without a value": (
        "features:\n  a: {aggregate: sum, events: {any: {sign: -1}}}",
        "2: feature 'a': 'sum' needs the path of a value; add `of: total`, or `value` under each event",
    ),
    "any mapped beside others": (
        "features:\n  a: {aggregate: count, events: {any: {where: {a: 1}}, page: null}}",
        "2: feature 'a': `any` stands alone; remove the other events, or remove any",
    ),
    "except without any": (
        "features:\n  a: {aggregate: count, events: page, except: [x]}",
        "2: feature 'a': `except` goes with `events: any` only; remove it",
    ),
    "a sign": (
        "features:\n  a: {aggregate: sum, of: total, events: {buy: {sign: -2}}}",
        "2: feature 'a', event 'buy': `sign` is 1 or -1",
    ),
    "a sign on a text": (
        "features:\n  a: {aggregate: last, of: total, events: {buy: {sign: -1}}}",
        "2: feature 'a': 'last' takes no `sign`; remove it, or use sum",
    ),
    "a path": (
        "features:\n  a: {aggregate: last, of: order..total, events: buy}",
        "2: feature 'a': a path names a property, such as `total`, `order.total` or `context.ip`",
    ),
    "a part": (
        "features:\n  a: {aggregate: score, parts: {recency_days: {weight: 3}}}",
        "2: feature 'a', part 'recency_days' needs half, e.g. {weight: 30, half: 14}",
    ),
    "a rate": (
        "currencies:\n  total_in: USD\n  rates:\n    EUR: dear",
        '4: the rate of EUR must be a decimal above 0: how many USD 1 EUR is, such as "1.08"',
    ),
    "rates into nothing": (
        "currencies:\n  rates: {}",
        "2: `rates` need a currency to convert into; add `total_in: USD`",
    ),
    "a currency": (
        "currencies: {total_in: usd}",
        "1: 'usd' is not a currency code; write one in capitals, such as USD",
    ),
    "a zone": (
        "timezone: Europe/Roma",
        "1: 'Europe/Roma' is not a time zone; write an IANA name such as Europe/Rome",
    ),
    "a delay": (
        "campaigns: {ignored_after: a week}",
        "1: `ignored_after`: 'a week' is not a duration; write it like 30d, 12h or 1y",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_cure(mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(InvalidDefinition) as caught:
        read_definitions([(FILE, text)])
    message = str(caught.value)
    if expected.startswith("shipped.yaml: "):
        name, _, rest = message.partition(":")
        assert (name, rest.partition(": ")[2]) == ("shipped.yaml", expected.partition(": ")[2])
    else:
        assert message == f"{FILE}:{expected}"


@pytest.mark.parametrize("empty", ["null", "true", "0", "-3", "2.5", "999999999999999"])
def test_what_reckons_with_emptiness_takes_numbers(empty: str) -> None:
    text = f"features:\n  spend: {{aggregate: average, events: buy, of: v, empty: {empty}}}\n"
    text += "  rate: {aggregate: ratio, numerator: spend, denominator: visits}\n"
    text += "  visits: {aggregate: count, events: page, empty: 2}\n"
    text += "  score: {aggregate: score, parts: {spend: {weight: 1, half: 1}}}"
    view = projection(read_definitions([(FILE, text)])).view({}, 0, [])
    expected = None if empty == "null" else yaml.safe_load(empty) / 2
    assert (view["rate"]["value"], view["score"]["value"]) == (expected, 0)


def test_all_mistakes_are_told_at_once() -> None:
    text = "feature: 1\nfeatures:\n  a: {aggregate: coun}\n  b: {aggregate: count}\ntimezone: Nowhere"
    with pytest.raises(InvalidDefinition) as caught:
        read_definitions([(FILE, text), ("other.yaml", "features: 3")])
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        f"{FILE}:1",
        f"{FILE}:3",
        f"{FILE}:4",
        f"{FILE}:5",
        "other.yaml:1",
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "features: {}", "--- {}"])
def test_an_empty_file_leaves_what_ships(text: str) -> None:
    assert read_definitions([(FILE, text)]) == read_definitions()


@pytest.mark.parametrize(
    "text", ["\0", "a: &a [*a]", "features: &f {a: *f}", "{[1]: 2}", "? {a: 1}\n: 2", "- 1\n---\n- 2"]
)
def test_hostile_files_are_refused_and_break_nothing(text: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"threadline\.yaml:\d+: "):
        read_definitions([(FILE, text)])


def test_a_declaration_replaces_the_shipped_one_as_a_whole() -> None:
    text = "features:\n  conversion_rate: {aggregate: count, events: page}\n  campaign_ignored: false"
    features = read_definitions([(FILE, text)])
    assert features.by_name["conversion_rate"].aggregate == "count"
    assert "conversion_rate.numerator" not in features.by_name
    assert "campaign_ignored" not in features.by_name


def test_a_feature_is_declared_once_over_all_files(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text("features: {visits: {aggregate: count, events: page}}", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no definitions: [", encoding="utf-8")
    with pytest.raises(InvalidDefinition) as caught:
        load_definitions([tmp_path])
    told = f"{tmp_path}/b.yml:1: feature 'visits' is already declared at {tmp_path}/a.yaml:1; keep one"
    assert str(caught.value) == told
    (tmp_path / "b.yml").unlink()
    assert "visits" in load_definitions([tmp_path]).names


def test_a_missing_file_and_one_that_is_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    for name in ("absent.yaml", "latin.yaml"):
        with pytest.raises(InvalidDefinition, match=rf"{name}:1: the file cannot be read as UTF-8 text: "):
            load_definitions([tmp_path / name])


def test_sections_of_others_are_passed_over_only_if_they_are_read() -> None:
    text = "people: {x: 1}"
    definitions = Definitions([(FILE, text)])
    definitions.section("people")
    assert read_features(definitions) == read_definitions()
    definitions.refuse_unknown()
    with pytest.raises(InvalidDefinition, match="unknown key 'people'"):
        read_definitions([(FILE, text)])


def test_a_part_in_place_takes_the_window_of_its_ratio() -> None:
    text = """
        features:
          rate:
            aggregate: ratio
            window: 3d
            numerator: {aggregate: count, events: page}
            denominator: {aggregate: count, events: page, window: lifetime}
    """
    features = read_definitions([(FILE, text)]).by_name
    assert features["rate.numerator"].window == 3 * 86_400_000_000
    assert features["rate.denominator"].window is None
    assert features["rate.numerator"].hidden


# --- fingerprints -----------------------------------------------------------------------------------

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


# --- the schema -------------------------------------------------------------------------------------

VALIDATOR = jsonschema_rs.Draft202012Validator(schema(sections()))
SHIPPED: Any = yaml.safe_load(
    resources.files("threadline.capabilities.features").joinpath("shipped.yaml").read_text(encoding="utf-8")
)


def test_the_schema_takes_what_ships_and_what_the_page_shows() -> None:
    page = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in page.split("```yaml\n")[1:]]
    assert len(blocks) >= 5
    for written in [SHIPPED, *map(yaml.safe_load, blocks)]:
        assert [error.message for error in VALIDATOR.iter_errors(written)] == []
    for block in blocks:
        read_definitions([(FILE, block)])


STRUCTURAL = {
    "unknown key",
    "misspelt aggregate key",
    "no aggregate",
    "unknown aggregate",
    "no events",
    "an option of others",
    "a duration",
    "a bare number of days",
    "unknown operator",
    "null in a condition",
    "a bound that is no number",
    "exists",
    "a ratio of one",
    "a name",
    "no mapping",
    "a sign",
    "a part",
    "a currency",
}


@pytest.mark.parametrize("mistake", sorted(STRUCTURAL))
def test_the_schema_refuses_what_an_editor_can_see(mistake: str) -> None:
    assert not VALIDATOR.is_valid(yaml.safe_load(MISTAKES[mistake][0]))


def test_the_schema_offers_every_aggregate() -> None:
    assert schema(sections())["$defs"]["feature"]["properties"]["aggregate"]["enum"] == list(AGGREGATES)
