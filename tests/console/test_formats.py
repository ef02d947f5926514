"""Numbers, reasons and durations as every screen shows them."""

from __future__ import annotations

import pytest

from tests.console.stage import close_up, opened, signed_in
from threadline.surfaces.console.formats import digits_of, lasting, number, plain, spoken
from threadline.surfaces.console.frame import help_text


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ([1, 20, 300], ["1", "20", "300"]),
        ([4.0, 4.87], ["4.00", "4.87"]),
        ([24.77, 0, 1_234.5], ["24.77", "0.00", "1,234.50"]),
        ([0.4286, 0.5], ["0.4286", "0.5000"]),
        ([2.0, 3.0], ["2", "3"]),
    ],
)
def test_numbers_of_a_column_have_as_many_digits_behind_the_point(column: list[float], shown: list[str]) -> None:
    assert [number(value, digits_of(column)) for value in column] == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "yes"),
        (False, "no"),
        (1_234.5, "1,234.50"),
        ("2026-10-26T10:50:46.459237Z", "2026-10-26 10:50:46 UTC"),
        ("pro", "pro"),
        (None, None),
    ],
)
def test_a_single_value_is_shown_as_people_read_it(value: object, shown: object) -> None:
    assert plain(value) == shown


def test_a_reason_for_programs_has_words_for_people() -> None:
    assert [spoken(reason) for reason in ("exit_on", "holdout", "no_address")] == [
        "exit condition met",
        "control group",
        "no address",
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [("7d", "1 week"), ("30d", "30 days"), ("1h", "1 hour"), ("soon", "soon"), ("", "")]
)
def test_a_duration_is_shown_in_words(text: str, shown: str) -> None:
    assert lasting(text) == shown


def test_a_new_rule_has_a_field_for_each_of_its_parts() -> None:
    with opened() as engine:
        page = close_up(signed_in(engine).get("/rules/new").text)
    assert "Add an action" in page
    assert "In YAML only" not in page


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("in `code` and ``more``", "in <code>code</code> and <code>more</code>"),
        ("event -> topic", "event → topic"),
        ("<b> `a` `", "&lt;b&gt; <code>a</code> `"),
    ],
)
def test_help_has_its_code_and_arrows_drawn(text: str, markup: str) -> None:
    assert str(help_text(text)) == markup


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("/segments/new", "Write a segment"),
        ("/segments/new?name=good_customers", "Change the segment good customers"),
        ("/journeys/new?name=welcome", "Change the journey welcome"),
        ("/points/new?name=points", "What earns points"),
    ],
)
def test_an_editor_of_what_is_there_says_what_is_changed(path: str, heading: str) -> None:
    with opened() as engine:
        assert f"<h1>{heading}</h1>" in close_up(signed_in(engine).get(path).text)
