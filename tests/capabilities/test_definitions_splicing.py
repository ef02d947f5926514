"""A definition put into a file: whatever stood there stays, comments too, or nothing is written."""

from __future__ import annotations

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.capabilities.foundation.definitions.splicing import spliced
from threadline.capabilities.foundation.definitions.writing import yaml_of

FILE = """\
# The shop.
settings: {port: 1}
segments:
  # Who buys.
  buyers:
    when: {field: features.has_purchased, equals: true}  # for now

  # Who pays a lot.
  big:   {when: {field: features.monetary_total, greater_than: 50}}

# What is decided.
rules:
    large:
        conditions: {field: event.properties.total, greater_than: 30}
"""
VIP = "description: Our best.\nwhen: {field: tags, contains: vip}\n"


def test_a_new_one_stands_behind_the_others_of_its_section() -> None:
    made = spliced(FILE, ("segments", "vip"), VIP)
    assert made is not None
    vip = "  vip:\n    description: Our best.\n    when: {field: tags, contains: vip}\n"
    assert made == FILE.replace("\n# What is", f"{vip}\n# What is")


def test_one_of_the_name_is_replaced_and_its_neighbours_and_their_comments_stay() -> None:
    made = spliced(FILE, ("segments", "buyers"), "when: {field: tags, contains: vip}")
    assert made is not None
    assert made.split("\n")[3:9] == [
        "  # Who buys.",
        "  buyers:",
        "    when: {field: tags, contains: vip}",
        "",
        "  # Who pays a lot.",
        "  big:   {when: {field: features.monetary_total, greater_than: 50}}",
    ]
    last = spliced(FILE, ("rules", "large"), "{conditions: {field: tags, exists: true}}")
    assert last is not None
    assert last.endswith("rules:\n    large: {conditions: {field: tags, exists: true}}\n")


def test_a_section_that_is_not_there_or_empty_is_made() -> None:
    assert spliced("", ("segments", "vip"), VIP) == (
        "segments:\n  vip:\n    description: Our best.\n    when: {field: tags, contains: vip}\n"
    )
    for text in ("# nothing yet\n", "segments:\n", "rules: {}\nsegments:", "mail: {senders: {}}"):
        made = spliced(text, ("segments", "vip"), VIP)
        assert made is not None
        assert yaml.safe_load(made)["segments"] == {"vip": yaml.safe_load(VIP)}
        assert made.startswith(text.rstrip("\n").removesuffix("segments:"))


def test_what_cannot_be_done_exactly_is_not_done() -> None:
    for text in (
        "{segments: {}}",
        "segments: {big: {when: 1}}",
        "- a",
        "segments: [",
        "segments: &all\n  a: 1\nrules: *all\n",
        "segments: text\n",
    ):
        assert spliced(text, ("segments", "vip"), VIP) is None, text
    assert spliced("base: &b {x: 1}\nsegments: {}\n", ("base",), "{x: 2}") == "base: {x: 2}\nsegments: {}\n"
    assert spliced("segments:\n  a: &b {x: 1}\n  c: *b\n", ("segments", "a"), "{x: 2}") is None, "c was what a was"


names = st.sampled_from(["segments", "rules", "vip", "on", "null", "1", "a b", "ä", "large-order"])
values = st.recursive(
    st.integers() | st.booleans() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=9,
)
sections = st.dictionaries(names, st.dictionaries(names, values, min_size=1, max_size=3), max_size=3)


@example({}, "segments", "vip", "\x85\u2028", None)
@given(sections, names, names, values, st.sampled_from([None, False]))
def test_a_text_says_the_same_and_the_new_one(
    file: dict[str, dict[str, object]], section: str, name: str, value: object, flow: bool | None
) -> None:
    text = yaml_of(file, is_compact=flow is None) if file else ""
    body = yaml_of(value, is_compact=flow is None).removesuffix("...\n")
    assert yaml.safe_load(body) == value
    made = spliced(text, (section, name), body)
    if made is not None:
        assert yaml.safe_load(made) == {**file, section: {**file.get(section, {}), name: value}}
