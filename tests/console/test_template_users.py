"""What sends a template, on its page: journeys, and what of the store still goes by it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.console.stage import signed_in
from threadline.app import open_engine
from threadline.settings import Settings
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates:
    hello: {subject: Hello, text: Hello}
    other: {subject: Other, text: Other}
    alone: {subject: Alone, text: Alone}
journeys:
  first: {trigger: {event: signed_up}, steps: [{send: hello}]}
  tried:
    trigger: {event: signed_up}
    steps: [{send: {variants: [{template: other, name: a}, {template: hello, name: b}]}}]
"""


def test_a_template_names_the_journeys_and_broadcasts_that_send_it(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with closing(open_engine("memory:", Settings(), definitions=file)) as engine:
        Threadline(engine).broadcasts.create(id="spring", template="hello")
        client = signed_in(engine)

        def senders(template: str) -> list[bool]:
            part = client.get(f"/templates/{template}?part=users").text
            return [text in part for text in ("/journeys/first", "/journeys/tried", "spring", "No journey")]

        assert senders("hello") == [True, True, True, False]
        assert senders("other") == [False, True, False, False]
        assert senders("alone") == [False, False, False, True]
        assert "What sends it" in client.get("/templates/hello").text
