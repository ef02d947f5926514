"""Every picture of a screen comes from the script that makes it again, is shown on a page, and is small."""

from __future__ import annotations

from release.tour.pictures import PICTURES
from tests.docs.markdown import ROOT, links, pages

DOCS = ROOT / "docs"
BYTES_MAX = 100_000
FILES = {path.relative_to(DOCS) for kind in ("png", "webp", "jpg", "gif") for path in DOCS.glob(f"**/*.{kind}")}


def test_each_picture_is_made_by_the_script() -> None:
    assert sorted(map(str, FILES)) == sorted(f"{picture.name}.webp" for picture in PICTURES)


def test_each_picture_is_shown_on_a_page() -> None:
    shown = {(page.parent / target).resolve() for page in pages() for target in links(page.read_text())}
    assert [str(file) for file in FILES if DOCS / file not in shown] == []


def test_pictures_are_small() -> None:
    assert {str(file): size for file in FILES if (size := (DOCS / file).stat().st_size) > BYTES_MAX} == {}
