"""A mail as it was sent, on the screen of its person: in a frame in which nothing of it can run."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from pathlib import Path

from tests.console.stage import NOW, signed_in, unsafe
from threadline.app import open_dispatcher, open_engine
from threadline.settings import Settings
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates:
    hello:
      subject: "Hello, {{ person.traits.first_name }}"
      html: "<p>{{ note }}</p><script>alert(1)</script><img src='https://elsewhere.example/x.png'>"
      variables: {note: {default: none}}
      transactional: true
"""


def test_a_mail_is_shown_in_a_frame_that_runs_and_loads_nothing(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    clock = count(NOW)  # what is of the very instant of a question is not known before it
    with closing(open_engine("memory:", Settings(), lambda: next(clock), file)) as engine:
        shop, settings = Threadline(engine), Settings(public_url="https://shop.example")
        shop.identify("ada", {"email": "ada@example.com", "first_name": "Ada"})
        message = shop.mail.send("ada", template="hello", variables={"note": "<b>7</b>"}).message
        dispatcher = open_dispatcher(engine, settings)
        while dispatcher.run_once():
            pass
        client = signed_in(engine)
        page = client.get("/people/user_id:ada?tab=reach").text
        part = client.get(f"/people/user_id:ada?part=mail&message={message}").text
        frame = client.get(f"/people/user_id:ada?part=mail_html&message={message}")
        nothing = client.get("/people/user_id:ada?part=mail&message=0000").text
    assert f"message={message}" in page
    assert "Hello, Ada" in part
    assert unsafe(part) == unsafe(page) == []
    assert '<iframe class="desk" sandbox ' in part
    assert "&lt;b&gt;7" in frame.text
    assert frame.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    assert "cannot be shown" in nothing
