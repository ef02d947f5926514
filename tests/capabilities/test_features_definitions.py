"""The definitions' language: what each mistake is told, and what replaces what."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.capabilities.features_mistakes import FILE, MISTAKES
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features import load_definitions, projection, read_definitions
from threadline.capabilities.profile.features.definition import read_features
from threadline.kernel.errors import InvalidDefinition


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
