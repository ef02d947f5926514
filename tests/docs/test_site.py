"""The rendered site: three layers, every page of a reader in one of them, and a search that finds the field's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.markdown import ROOT, anchors, links
from tests.docs.site import NAVIGATION, SearchBox, build, search_of

LAYERS = ("Learn", "Do", "Look up")
FOR_ENGINEERS = {"where.md", "how-to-add-a-capability.md"}
"""Pages that stand in no navigation, as do the records of decisions: `read-the-code.md` leads to them."""
WORDS = {
    "campaign": "broadcasts.md",
    "newsletter": "broadcasts.md",
    "funnel": "analytics.md",
    "GDPR": "privacy.md",
    "retention": "analytics.md",
    "bounce": "feedback.md",
    "unsubscribe": "consent.md",
    "churn": "analytics.md",
    "cohort": "analytics.md",
    "A/B test": "broadcasts.md",
    "webhook": "webhooks.md",
    "merge": "people.md",
}
"""A word of the field, and the page that whoever types it looks for."""
QUESTIONS = [
    (kind, each)
    for kind, of_kind in yaml.safe_load((ROOT / "tests/docs/questions.yaml").read_text()).items()
    for each in of_kind
]
each_question = pytest.mark.parametrize("asked", [asked for _, asked in QUESTIONS], ids=lambda asked: asked["words"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # `make docs` once failed by links that led out of the folder, to what the rendered pages lack.
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def search(site: Path) -> Iterator[SearchBox]:
    with search_of(site) as box:
        yield box


def test_navigation_is_the_first_page_and_three_layers() -> None:
    assert [name for entry in NAVIGATION for name in entry] == ["Home", *LAYERS]


def test_every_page_for_readers_stands_in_the_navigation_once() -> None:
    listed = re.findall(r"[\w/-]+\.md", str(NAVIGATION))
    assert len(listed) == len(set(listed))
    written = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    assert set(listed) == {page for page in written - FOR_ENGINEERS if not page.startswith("decisions/")}


def test_pages_for_engineers_are_linked_from_where_they_begin() -> None:
    targets = set(links((ROOT / "docs/read-the-code.md").read_text()))
    assert targets >= {*FOR_ENGINEERS, "decisions/0001-msgspec.md"}


def test_site_is_rendered_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()
    assert (site / "decisions/0001-msgspec.html").exists()


def test_search_leaves_out_what_is_for_engineers(site: Path) -> None:
    index = (site / "search.json").read_text()
    assert '"location":"start.html"' in index
    assert re.findall(r'"location":"(?:decisions/|where\.html)', index) == []


@pytest.mark.parametrize("word", WORDS)
def test_search_finds_a_word_of_the_field(word: str, search: SearchBox) -> None:
    assert WORDS[word] in search.pages(word)


def test_there_are_thirty_questions_of_five_kinds_of_users() -> None:
    assert Counter(kind for kind, _ in QUESTIONS) == dict.fromkeys(
        ("marketer", "support", "data scientist", "operator", "engineer"), 6
    )


@each_question
def test_question_is_answered_below_a_heading_of_a_page(asked: dict[str, str]) -> None:
    file = ROOT / "docs" / asked["page"]
    assert anchors(f"# {asked['heading']}\n") <= anchors(file.read_text())


@each_question
def test_search_for_the_words_of_a_question_shows_the_page_of_its_answer(
    asked: dict[str, str], search: SearchBox
) -> None:
    assert asked["page"] in search.pages(asked["words"])
