"""What the buttons beside a mail do to its text: it stays a template, comments stay, and nothing else changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadline.capabilities.foundation.definitions import Part
from threadline.capabilities.foundation.definitions.declaring import struct
from threadline.capabilities.foundation.definitions.plain import Json
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.mail.blocks import BLOCKS
from threadline.capabilities.reach.mail.definition import Wording
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.mail_frames import darkened, lightened
from threadline.surfaces.console.template_editing import (
    NEW_BLOCKS,
    changed,
    language_at,
    languages_of,
    outlined,
    root_of,
)

BEGUN = """\
subject: Hello  # short
# What it says.
blocks:
  # For everybody.
  - heading: Hello {{ person.traits.first_name | default("there") }}
  - text: |
      Some words

      and more
  # Two of them.
  - columns:
      - - text: left
        - button: {text: Go, link: "https://shop.example"}
      - - picture: {source: "https://shop.example/a.png", alt: A}
  - footer: {text: The Shop}
"""


def paths(blocks: list[dict[str, Any]]) -> list[str]:
    """The paths of all blocks."""
    inner = [path for block in blocks for column in block["columns"] for path in paths(column)]
    return [*(block["path"] for block in blocks), *inner]


def action_of(random: Random, text: str, language: str) -> str:
    at = paths(outlined(value_of(text), root_of(language)))
    root = ".".join((*root_of(language), "blocks"))
    chosen = random.choice(at) if at else ""
    place = random.choice([*at, f"{root}.{len(at)}"])
    choices = [f"new:{place}:{random.choice([*NEW_BLOCKS])}", "language", "at:nowhere"]
    if chosen:
        choices += [f"{name}:{chosen}" for name in ("copy", "up", "down", "at", "column")]
    if len(outlined(value_of(text), root_of(language))) > 1 and ".columns." not in chosen:
        choices.append(f"remove:{chosen}")
    return random.choice(choices)


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_any_buttons_leave_a_template_and_its_comments(random: Random) -> None:
    state, language = Drawn(BEGUN, ""), ""
    for _ in range(8):
        action = action_of(random, state.text, language)
        before = value_of(state.text)
        state = changed(state, action, random.choice(("de", "pt-BR", "not a language", "")))
        after = value_of(state.text)
        struct(Wording).read(Part(Json("template", "t"), {name: after[name] for name in ("subject", "blocks")}))
        assert state.text.startswith("subject: Hello  # short\n"), action
        if action.startswith(("at:", "new:nowhere")):
            assert after == before
        language = random.choice([*languages_of(after)[1:], ""])
        if action.startswith(("new:", "copy:", "up:", "down:")) and state.at:
            assert state.at in paths(outlined(after, root_of(language_at(state.at))))


@pytest.mark.parametrize("kind", [*NEW_BLOCKS])
def test_what_is_put_in_is_a_block_as_it_is(kind: str) -> None:
    BLOCKS.read(Part(Json("blocks", "blocks"), [value_of(NEW_BLOCKS[kind])]))
    state = changed(Drawn(BEGUN, ""), f"new:blocks.1:{kind}", "")
    assert [kind in block for block in value_of(state.text)["blocks"]][1]
    assert state.at == "blocks.1"
    assert "  # For everybody.\n  - heading:" in state.text


def test_a_new_language_begins_with_the_words_that_are_there_and_goes_without_a_trace() -> None:
    state = changed(Drawn(BEGUN, ""), "language", "de")
    values = value_of(state.text)
    assert languages_of(values) == ["en", "de"]
    assert values["languages"]["also"]["de"] == {name: values[name] for name in ("subject", "blocks")}
    assert state.at == "languages.also.de"
    assert state.text.startswith(BEGUN)
    assert value_of(changed(state, "unlanguage:languages.also.de", "").text) == value_of(BEGUN)


def test_a_block_of_another_language_is_changed_there_alone() -> None:
    state = changed(Drawn(BEGUN, ""), "language", "de")
    state = changed(state, "remove:languages.also.de.blocks.0", "")
    values = value_of(state.text)
    assert len(values["blocks"]) == 4
    assert len(values["languages"]["also"]["de"]["blocks"]) == 3


OLDER = (
    *("new:blocks.9.columns.0.0:text", "new:blocks.2.columns.0.0:footer", "new:steps.0:text", "remove:blocks.9"),
    *("remove:blocks.x", "column:blocks.0", "uncolumn:blocks.2.columns.7x", "begin:nothing", "unlanguage:subject"),
    *("copy:", "up:", "remove:", "copy:languages.also.de", "language", "at:languages.also.fr", "", "x"),
)


@pytest.mark.parametrize("action", OLDER)
def test_a_button_of_an_older_page_changes_nothing(action: str) -> None:
    assert changed(Drawn(BEGUN, ""), action, "no language").text == BEGUN


def test_the_last_column_stays() -> None:
    state = changed(Drawn(BEGUN, ""), "uncolumn:blocks.2.columns.0", "")
    assert [len(column) for column in value_of(state.text)["blocks"][2]["columns"]] == [1]
    assert changed(state, "uncolumn:blocks.2.columns.0", "").text == state.text


def test_a_dark_mail_has_its_own_colours_or_those_that_programs_make() -> None:
    own = "<head><style>@media (prefers-color-scheme:dark) { p { color: red } }</style></head>"
    assert darkened(own) == own.replace("@media (prefers-color-scheme:dark)", "@media all")
    assert lightened(own) == own.replace("@media (prefers-color-scheme:dark)", "@media not all")
    assert "invert" in darkened("<head><title>x</title></head><p>x</p>").partition("</head>")[0]
    assert "invert" in darkened("<p>x</p>")
