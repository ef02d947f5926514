"""The picture of a journey: whatever its steps, nothing stands on anything else, and every way is an arrow."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.console.stage import close_up, opened, signed_in, unsafe
from threadline.surfaces.console.flowchart import LINE_LETTERS, WIDE, drawn
from threadline.surfaces.python.embedded import Threadline

SINGLE = st.sampled_from(["send hello", "wait 2d", "wait for purchase_completed, at most 4d" * 3])
TREES = st.recursive(
    st.lists(SINGLE, max_size=3),
    lambda inner: st.lists(SINGLE | st.lists(inner, min_size=2, max_size=4), max_size=3),
    max_leaves=20,
)
"""Sequences of single steps and of branchings, which hold sequences."""


def steps_of(sequence: list[Any], after: str, prefix: str = "s") -> list[dict[str, Any]]:
    """A sequence as `journeys_show` lists it: each step with its ways, and where they come together."""
    made: list[dict[str, Any]] = []
    for number, each in reversed([*enumerate(sequence, 1)]):
        id = f"{prefix}{number}"
        if isinstance(each, str):
            step = {"ways": [{"to": after, "when": ""}], "kind": each.partition(" ")[0], "does": each}
            inner: list[dict[str, Any]] = []
        else:
            branches = [steps_of(branch, after, f"{id}.{place}.") for place, branch in enumerate(each)]
            ways = [
                {"to": branch[0]["step"] if branch else after, "when": f"way {place}"}
                for place, branch in enumerate(branches)
            ]
            step = {"ways": ways, "kind": "choice", "does": "choice"}
            inner = [one for branch in branches for one in branch]
        made = [{**step, "step": id, "people": 0, "joins": after}, *inner, *made]
        after = id
    return made


@given(TREES)
def test_no_box_stands_on_another_and_every_way_is_an_arrow(tree: list[Any]) -> None:
    steps = steps_of(["send hello", *tree], "")
    picture = drawn({"name": "j", "steps": steps, "entered_by": "signed_up"}, None)
    boxes = [(each["x"], each["y"], each["high"]) for each in picture["boxes"]]
    assert sorted(each["step"] for each in picture["boxes"]) == sorted(each["step"] for each in steps)
    for number, (x, y, high) in enumerate(boxes):
        assert 0 <= x <= picture["width"] - WIDE
        assert 0 <= y <= picture["height"] - high
        for other_x, other_y, other_high in boxes[number + 1 :]:
            assert abs(x - other_x) >= WIDE or (y + high <= other_y or other_y + other_high <= y)
    assert len(picture["arrows"]) == 1 + sum(len(each["ways"]) for each in steps)
    assert {each["why"] for each in picture["arrows"] if each["why"]} == {
        way["when"] for each in steps for way in each["ways"] if way["when"]
    }


def test_a_step_is_shown_by_what_it_does_and_its_path_stays_in_addresses_and_titles(tmp_path: Any) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text("""
journeys:
  offers:
    trigger: {event: signed_up}
    steps:
      - if: {field: traits.plan, equals: club}
        then: [{send: hello}]
        else: [{send: hello}, {wait: 2d}]
      - wait: {event: purchase_completed, timeout: 1d}
mail: {senders: {shop: {from: a@example.com}}, templates: {hello: {subject: Hi, text: Hi}}}
""")
    with opened(file) as engine:
        shop = Threadline(engine)
        shop.track("ada", "signed_up")
        client = signed_in(engine)
        people = client.get("/journeys/offers?part=people").text
        at_step = client.get("/journeys/offers?part=people&step=1.else.2").text
        way = client.get("/journeys/offers?part=way").text
        person = client.get("/people/user_id:ada?tab=reach").text
        history = client.get("/people/user_id:ada?part=way&journey=offers").text
    assert '<td title="1.else.2">wait 2 days</td>' in people
    assert "<h2>At: wait 2 days</h2>" in at_step
    assert "step=1.else.2" in way
    for word in ("if plan is club", "send hello", "wait 2 days", "wait for purchase"):
        assert word in way
    assert "wait 2 days</span>" in person
    assert "if plan is club → send hello (plan is not club)" in history
    shown = re.sub(
        r'(title|href|value|data-\w+)="[^"]*"|<title>.*?</title>',
        "",
        close_up(people + at_step + way + history),
        flags=re.DOTALL,
    )
    assert "1.else" not in shown


def test_a_text_stands_in_its_box_whole() -> None:
    does = f"wait for {'customer_subscription_cancelled' * 3}, at most 4 days"
    picture = drawn({"name": "j", "steps": steps_of([does], ""), "entered_by": "signed up or " * 9}, None)
    for box, text in ((picture["boxes"][0], does), (picture["start"], "signed up or " * 9)):
        assert "".join(box["lines"]).replace(" ", "") == text.replace(" ", "")
        assert max(map(len, box["lines"])) <= LINE_LETTERS
        assert box["first"] + 17 * (len(box["lines"]) - 1) < box["high"] - 8


@given(TREES)
def test_every_arrow_begins_below_its_step_and_ends_above_the_next(tree: list[Any]) -> None:
    steps = steps_of(["send hello", *tree], "")
    picture = drawn({"name": "j", "steps": steps, "entered_by": "signed_up"}, None)
    below = {(each["x"] + WIDE / 2, each["y"] + each["high"]) for each in picture["boxes"]}
    above = {(each["x"] + WIDE / 2, each["y"]) for each in picture["boxes"]}
    below.add((picture["start"]["x"] + WIDE / 2, picture["start"]["y"] + picture["start"]["high"]))
    above.add((picture["end"]["x"] + 60, picture["end"]["y"]))
    for arrow in picture["arrows"]:
        corners = re.findall(r"(-?[\d.]+) (-?[\d.]+)", arrow["path"])
        first, last = (tuple(map(float, corner)) for corner in (corners[0], corners[-1]))
        assert first in below
        assert last in above


def test_the_numbers_of_a_journey_stand_in_its_picture_and_hostile_texts_are_text(tmp_path: Any) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text("""
journeys:
  welcome:
    description: "<script>alert(1)</script>"
    trigger: {event: signed_up, where: {plan: "</text><script>alert(2)</script>"}}
    exit_on: {event: closed_account}
    steps: [{wait: 2d}, {if: {field: traits.plan, equals: "</svg><script>"}, then: [{send: hello}]}]
mail: {senders: {shop: {from: a@example.com}}, templates: {hello: {subject: Hi, text: Hi}}}
""")
    with opened(file) as engine:
        shop = Threadline(engine)
        for who in ("ada", "bob", "cy"):
            shop.track(who, "signed_up", {"plan": "</text><script>alert(2)</script>"})
        shop.track("cy", "closed_account")
        client = signed_in(engine)
        page, part = client.get("/journeys/welcome").text, client.get("/journeys/welcome?part=way").text
    assert unsafe(page) == unsafe(part) == []
    assert "if plan is" in page
    assert 'class="runs">3<' in part
    assert "−1" in part
    assert "exit condition met" in part
