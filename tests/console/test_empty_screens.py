"""A store in which nothing has happened yet: every screen says that there is nothing, and no box of it is blank."""

from __future__ import annotations

import html
import html.parser
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.console.stage import opened, signed_in
from threadline.engine.engine import Engine
from threadline.surfaces.cli.demo.history import definitions
from threadline.surfaces.console.screens import screens

ALONE = ("section", "table")
"""What is there to show something: blank it says nothing."""
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
HEADINGS = frozenset({"header", "thead", "caption", "script", "style", "template"})
SAYS = frozenset({"input", "select", "textarea", "button", "svg", "img", "iframe"})
"""What says something without a text, or is there to be filled in."""


class _Blank(html.parser.HTMLParser):
    """The sections and tables of a page that have nothing but a heading."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[list[str | bool]] = []
        self.blank: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in SAYS or attributes.get("data-load"):
            self._say()
        if tag not in VOID:
            self.open.append([tag, False, self.get_starttag_text() or ""])

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            name, has_said, text = self.open.pop()
            if name in ALONE and not has_said:
                self.blank.append(str(text))
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._say()

    def _say(self) -> None:
        if not any(entry[0] in HEADINGS or re.search("<h[1-6]", str(entry[2])) for entry in self.open):
            for entry in self.open:
                entry[1] = True


def blank_in(markup: str) -> list[str]:
    """The starting tags of what is blank in a page."""
    parser = _Blank()
    parser.feed(markup)
    return parser.blank


@pytest.mark.parametrize(
    ("markup", "count"),
    [
        ("<section><header><h2>Mail</h2></header></section>", 1),
        ("<section><h2>Mail</h2><table><thead><tr><th>At</th></tr></thead><tbody></tbody></table></section>", 2),
        ("<section><h2>Mail</h2><p>None yet.</p></section>", 0),
        ("<section><h2>Mail</h2><div data-load='?part=x'></div></section>", 0),
        ("<table><tr><td>1</td></tr></table>", 0),
    ],
)
def test_what_has_a_heading_and_no_more_is_blank(markup: str, count: int) -> None:
    assert len(blank_in(markup)) == count


@pytest.fixture(scope="module", params=["", definitions()], ids=["nothing declared", "the demo's definitions"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = tmp_path_factory.mktemp("empty") / "threadline.yaml"
    file.write_text(request.param)
    with opened(Path(file)) as made:
        yield made


@pytest.mark.parametrize("path", sorted(screen.path for screen in screens() if "{" not in screen.path))
def test_on_an_empty_store_no_box_of_a_screen_is_blank(engine: Engine, path: str) -> None:
    client = signed_in(engine)
    page = client.get(path)
    assert page.status_code in (200, 303), page.text
    addresses = [urljoin(path, html.unescape(part)) for part in re.findall(r' data-load="([^"]*)"', page.text)]
    answers = {path: page.text, **{address: client.get(address).text for address in addresses}}
    assert {address: blank for address, text in answers.items() if (blank := blank_in(text))} == {}
