"""Values inside of a definition put in, taken out and changed: the text says what it should, and comments stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import yaml

from threadline.capabilities.foundation.definitions.nested_splicing import (
    item_text,
    value_at,
    with_item,
    with_item_instead,
    without,
)
from threadline.capabilities.foundation.definitions.splicing import saying, value_of

JOURNEY = """\
# Who signs up.
trigger: {event: signed_up}
steps:
  # Say hello.
  - send: hello
  - wait: 1d  # a day is enough

  # Who has not bought yet.
  - if: {field: features.has_purchased, equals: false}
    then:
      # The nudge.
      - id: nudge
        send: nudge
      - exit: done
  - send: thanks
# The end.
"""


def test_an_item_put_in_stands_before_the_one_at_its_position_and_the_comments_above_it() -> None:
    made = with_item(JOURNEY, ("steps", 2), "wait: {for: 2d}")
    assert made == JOURNEY.replace("  # Who has", "  - wait: {for: 2d}\n  # Who has")


def test_an_item_put_after_the_last_stands_before_comments_of_what_follows() -> None:
    made = with_item(JOURNEY, ("steps", 4), "# Then.\nif: {sent: hello}\nthen:\n  - exit: x\n")
    item = "  # Then.\n  - if: {sent: hello}\n    then:\n      - exit: x\n"
    assert made == JOURNEY.replace("# The end", f"{item}# The end")


def test_an_item_put_into_a_list_that_is_missing_makes_it_at_the_end_of_its_mapping() -> None:
    made = with_item(JOURNEY, ("steps", 2, "else", 0), "exit: not yet")
    assert made == JOURNEY.replace("      - exit: done\n", "      - exit: done\n    else:\n      - exit: not yet\n")


def test_an_item_taken_out_takes_the_comments_above_it_with_it_and_no_other() -> None:
    assert without(JOURNEY, ("steps", 0)) == JOURNEY.replace("  # Say hello.\n  - send: hello\n", "")
    assert without(JOURNEY, ("steps", 2, "then", 0)) == JOURNEY.replace(
        "      # The nudge.\n      - id: nudge\n        send: nudge\n", ""
    )


def test_an_item_is_moved_with_the_comments_above_it() -> None:
    item = item_text(JOURNEY, ("steps", 2, "then", 0))
    assert item == "# The nudge.\nid: nudge\nsend: nudge\n"
    moved = with_item(without(JOURNEY, ("steps", 2, "then", 0)), ("steps", 0), item)
    assert moved.split("steps:\n")[1].startswith("  # The nudge.\n  - id: nudge\n    send: nudge\n  # Say hello.\n")


def test_an_item_written_anew_stands_where_it_was_with_the_comment_above_it_given_anew() -> None:
    made = with_item_instead(JOURNEY, ("steps", 0), "# Say good day.\nsend: good_day\n")
    assert made == JOURNEY.replace("# Say hello.\n  - send: hello", "# Say good day.\n  - send: good_day")


def test_a_list_in_brackets_is_written_anew_and_nothing_else() -> None:
    text = "a: 1  # one\nsteps:\n  - if: {sent: x}  # maybe\n    then: [{send: y}]\n  - send: z  # last\n"
    made = with_item(text, ("steps", 0, "then", 1), "exit: done")
    assert value_of(made)["steps"][0]["then"] == [{"send": "y"}, {"exit": "done"}]
    assert made.startswith("a: 1  # one\nsteps:\n  - if: {sent: x}  # maybe\n    then:\n")
    assert made.endswith("  - send: z  # last\n")


def test_the_last_item_taken_out_leaves_an_empty_list() -> None:
    assert value_of(without("steps:\n  - send: a\n", ("steps", 0))) == {"steps": []}


# --- random edits beside plain lists ----------------------------------------------------------------


def _value(random: Random, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        random.choice(["send", "wait", "exit"]): random.choice(["a", "1d", 7, "x: y", "# no", "ä\nb"])
    }
    for name in ("then", "else"):
        if depth and random.random() < 0.4:
            made[name] = [_value(random, depth - 1) for _ in range(random.randint(1, 3))]
    return made


def _written(random: Random, value: dict[str, Any], numbers: Iterator[int], column: int) -> list[str]:
    """A mapping on lines of its own, in one of the ways in which people write; some have comments."""
    lines: list[str] = []
    for key, inner in value.items():
        behind = f"  # c{next(numbers)}c" if random.random() < 0.3 else ""
        if not isinstance(inner, list):
            scalar = yaml.safe_dump(inner, default_style='"' if isinstance(inner, str) else None).split("\n...")[0]
            lines.append(f"{key}: {scalar.strip()}{behind}")
        elif random.random() < 0.2:
            flow = yaml.safe_dump(inner, default_flow_style=True, width=10_000).strip()
            lines.append(f"{key}: {flow}{behind}")
        else:
            further = random.choice([0, 2, 3])
            lines.append(f"{key}:{behind}")
            for item in inner:
                if random.random() < 0.3:
                    lines.append(f"{' ' * further}# c{next(numbers)}c")
                first, *rest = _written(random, item, numbers, column + 2)
                lines += [f"{' ' * further}- {first}", *(f"{' ' * (further + 2)}{line}" for line in rest)]
                if random.random() < 0.2:
                    lines.append("")
    return lines


def _lists(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of the lists in a value."""
    for key, inner in value.items():
        if isinstance(inner, list):
            yield (*path, key)
            for number, item in enumerate(inner):
                yield from _lists(item, (*path, key, number))


def _comments(text: str) -> set[str]:
    return set(re.findall(r"c\d+c", text))


@pytest.mark.parametrize("number", range(25))
def test_random_edits_say_what_plain_lists_say_and_lose_no_comment(seed: int, number: int) -> None:
    random = Random(f"{seed} {number}")
    numbers = iter(range(10_000))
    value: dict[str, Any] = {"name": "x", "then": [_value(random, 3) for _ in range(3)]}
    text = "\n".join(["# c_top", *_written(random, value, numbers, 0)]) + "\n"
    assert value_of(text) == value
    for _ in range(12):
        before = text
        path = random.choice([*_lists(value)])
        items = value_at(value, path)
        kind = random.choice(["add", "take", "move", "change", "begin"])
        if kind == "add" or not items:
            new, at = _value(random, 1), random.randint(0, len(items))
            text = with_item(text, (*path, at), yaml.safe_dump(new, sort_keys=False))
            items.insert(at, new)
            kept = _comments(before)
        elif kind == "take":
            at = random.randrange(len(items))
            text = without(text, (*path, at))
            gone = _comments(item_text(before, (*path, at)))
            del items[at]
            kept = _comments(before) - gone if items else set()
        elif kind == "move":
            at, to = random.randrange(len(items)), random.randrange(len(items))
            item = item_text(text, (*path, at))
            text = without(text, (*path, at))
            left = [*items[:at], *items[at + 1 :]]
            text = with_item(text, (*path, to), item)
            items[:] = [*left[:to], items[at], *left[to:]]
            kept = _comments(before) if left else set()
        elif kind == "change":
            at = random.randrange(len(items))
            items[at]["wait"] = "9d"
            item = item_text(text, (*path, at))
            text = with_item_instead(text, (*path, at), saying(item, {**value_of(item), "wait": "9d"}))
            kept = _comments(before)
        else:
            at = random.randrange(len(items))
            new = _value(random, 0)
            text = with_item(text, (*path, at, "else", 0), yaml.safe_dump(new))
            items[at].setdefault("else", []).insert(0, new)
            kept = _comments(before)
        assert value_of(text) == value, (kind, path, before, text)
        assert kept <= _comments(text), (kind, path, before, text)
