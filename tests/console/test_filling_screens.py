"""Screens of a segment that is being filled: they say how far it is, and never take a part of it for the whole."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.stage import NOW, record, signed_in
from threadline.app import open_dispatcher, open_engine
from threadline.engine.engine import Engine
from threadline.settings import Settings

MAIL = "mail: {senders: {shop: {from: shop@shop.example}}, templates: {offer: {subject: Offer, text: Hello}}}\n"
SEGMENTS = "segments: {pros: {when: {field: traits.plan, equals: pro}}}\n"
PEOPLE = 40
FAR = re.compile(r"Being filled since definitions changed \([1-9][0-9]?% of everybody looked at\)\.")


@pytest.fixture
def half(tmp_path: Path) -> Iterator[Engine]:
    """A segment that came into force after its people, in the midst of being filled."""
    store, file = str(tmp_path / "shop.db"), tmp_path / "threadline.yaml"
    file.write_text(MAIL + "segments: {}\n")
    before = open_engine(store, Settings(), lambda: NOW, file)
    record(before, *((f"p{n}", "identify", {"plan": "pro", "email": f"p{n}@example.com"}) for n in range(PEOPLE)))
    before.close()
    file.write_text(MAIL + SEGMENTS)
    made = open_engine(store, Settings(), lambda: NOW, file)
    assert made.maintenance.advance("", 10).next.startswith("segments")
    yield made
    made.close()


def fill(engine: Engine) -> None:
    cursor = engine.maintenance.advance("", PEOPLE).next
    while cursor:
        cursor = engine.maintenance.advance(cursor, PEOPLE).next


def shown(engine: Engine, path: str) -> str:
    page = signed_in(engine).get(path)
    assert page.status_code == 200
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.text)).split())


def test_page_of_a_segment_that_is_being_filled_says_how_far_and_never_that_nobody_belongs(half: Engine) -> None:
    page = shown(half, "/segments/pros")
    assert FAR.search(page)
    assert "Nobody belongs to it" not in page
    assert "threadline apply" not in page, "somebody has begun it"
    assert "pros: 10 so far." in shown(half, "/segments?part=sizes").lower()
    fill(half)
    page = shown(half, "/segments/pros") + shown(half, "/segments?part=sizes")
    assert "Being filled" not in page
    assert "so far" not in page


def test_page_of_a_segment_whose_fill_was_not_begun_says_what_to_do_and_of_one_with_a_job_does_not(
    half: Engine,
) -> None:
    file = Path(str(half.store.path)).parent / "threadline.yaml"  # type: ignore[attr-defined]
    file.write_text(MAIL + SEGMENTS.replace("pros", "others"))
    half.close()
    made = open_engine(str(file.parent / "shop.db"), Settings(), lambda: NOW, file)
    page = shown(made, "/segments/others")
    assert "(nobody was looked at yet)" in page
    assert "threadline apply" in page
    assert "Nobody was found yet" in page
    client = signed_in(made)
    token = made.credentials.create("default", "token", "apply", ["admin"])[1]
    assert client.post("/v1/definitions/apply/job", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert "threadline apply" not in shown(made, "/segments/others")
    made.close()


def test_draft_to_a_segment_that_is_being_filled_says_so_far_and_what_starting_it_means(half: Engine) -> None:
    token = half.credentials.create("default", "token", "write", ["admin"])[1]
    client = signed_in(half)
    for path, body in (("", {"template": "offer", "audience": {"segment": "pros"}}), ("/start", {})):
        answer = client.post(f"/v1/broadcasts/sale{path}", json=body, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.text
        preview = shown(half, "/broadcasts/sale?part=preview")
        assert FAR.search(preview)
        assert "people so far 10 " in preview
        assert "waits until it is whole" in preview
    dispatcher = open_dispatcher(half, Settings())
    dispatcher.run_once()
    state = shown(half, "/broadcasts/sale?part=state")
    assert FAR.search(state)
    assert "nobody of its audience is left out" in state
