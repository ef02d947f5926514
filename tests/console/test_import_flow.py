"""An import in a real browser: a file is uploaded, mapped, tried and recorded, by hand and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.server import Server
from tests.console.browser import serious
from tests.console.flows import Visit, running
from tests.console.stage import HOSTILE

ORDERS = 'Order no;Customer;Datum;Betrag;Note "<b>"\n' + "".join(
    f"o{n};u{n % 7};{n % 28 + 1:02}.12.2024;1.{n % 900 + 100},50;{'=1+1' if n % 5 else ''}\n" for n in range(2_500)
)
DEFINITIONS = "segments: {all: {when: {field: features.monetary_total, greater_than: 1}}}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("import"), DEFINITIONS) as served:
        yield served


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_440, "light"), (390, "dark")])
def test_a_file_is_uploaded_mapped_checked_and_imported_and_its_rejects_downloaded(
    browser: Any, server: Server, tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / f"orders {scheme} '&.csv"
    file.write_text(ORDERS + f"o9;u1;{HOSTILE[-3]};1;\n")
    visit = Visit(browser, server.url, width, scheme)
    page = visit.page
    visit.open("/imports")
    assert serious(page) == []
    page.set_input_files("[name=file]", str(file))
    page.locator("button:has-text('Upload')").press("Enter")
    page.wait_for_url(re.compile("/imports/[0-9a-f]+$"))
    assert page.locator("h1").inner_text() == file.name
    assert page.input_value("[name='c.2.use']") == "time"
    assert page.input_value("[name='format']") == "%d.%m.%Y"
    assert page.input_value("[name='c.3.read']") == "decimal_comma"
    page.fill("[name=type]", "purchase_completed")
    page.fill("[name='c.3.name']", "total")
    page.locator("button:has-text('Check all rows')").press("Enter")
    page.wait_for_selector("#state .badge:has-text('checked')", timeout=60_000)
    assert "2,500" in page.inner_text("#state")
    assert "Row 2,501" in page.inner_text("#state")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("[...document.querySelectorAll('.table')].every((e) => e.scrollWidth <= e.clientWidth + 1)")
    assert serious(page) == []
    with page.expect_download() as download:
        page.click("text=Download the rejected rows")
    assert HOSTILE[-3].replace('"', '""') in Path(download.value.path()).read_text()
    page.click("button:has-text('Import 2,500 rows')")
    assert "Record 2,500 rows as history?" in page.locator("dialog p").first.inner_text()
    page.locator("dialog button[value=yes]").press("Enter")
    page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)
    assert serious(page) == []
    visit.open("/imports")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visit.open("/people")
    assert page.locator("text=u1").count() > 0
    assert visit.faults == []
    page.context.close()
