"""``python -m release.tour``: fills a shop, opens its console in Chromium, and writes the pictures of the docs."""

from __future__ import annotations

import argparse
import base64
import shutil
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from release.parts import ROOT
from release.tour.pictures import PICTURES, Picture, settle
from release.tour.serving import serving, signed_in

DOCS = ROOT / "docs"
QUALITY = 0.85


def main() -> None:
    """Write all of them anew, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m release.tour", description=__doc__)
    parser.add_argument("names", nargs="*", help="such as guides/pictures/segment; none: all")
    parser.add_argument("--store", type=Path, help="a shop that was filled before; it is filled if it is not there")
    given = parser.parse_args()
    with serving(given.store) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages: dict[bool, Page] = {}
        for picture in PICTURES:
            if not given.names or picture.name in given.names:
                if picture.dark not in pages:
                    pages[picture.dark] = signed_in(browser, server, picture.dark)
                _take(pages[picture.dark], server.url, picture)
        browser.close()


def _take(page: Page, url: str, picture: Picture) -> None:
    width, height = picture.size
    page.set_viewport_size({"width": width, "height": height})
    page.goto(url + picture.path)
    settle(page)
    if picture.prepare is not None:
        picture.prepare(page)
        settle(page)
    file = DOCS / f"{picture.name}.webp"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(_compressed(page, page.screenshot()))


def _compressed(page: Page, png: bytes) -> bytes:
    """The picture as WebP, at about a third of the bytes; the browser has the encoder."""
    blank = page.context.new_page()
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    written: str = blank.evaluate(_TO_WEBP, [source, QUALITY])
    blank.close()
    return base64.b64decode(written.partition(",")[2])


_TO_WEBP = """async ([source, quality]) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height});
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality);
}"""


if __name__ == "__main__":
    main()
