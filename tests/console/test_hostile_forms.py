"""Hostile texts in every field of every form of the console, and as names of uploaded files: they stay texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, csrf_of, elements, opened, record, signed_in, unsafe
from tests.console.test_condition_form import Sent
from threadline.app import catalogue
from threadline.capabilities.decide.drafts.sections import BY_MEMBER, by_hand_of, members_of
from threadline.engine.engine import Engine
from threadline.surfaces.console.definition_form import ADD, PREFIX
from threadline.surfaces.console.screens import screens
from threadline.surfaces.console.screens.drafts import form_path
from threadline.surfaces.console.shapes import VALUE

DEFINITIONS = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {sale: {sender: shop, subject: "{{ what }}", text: Hello, variables: {what: {default: Sale}}}}
"""
SOME = HOSTILE[::37]
"""Of some 500: a field is shown by a macro that all share, so each text need not stand in each."""


def forms() -> Iterator[str]:
    """The address of every page that takes a form, and of every definition that has one."""
    made = catalogue()
    yield from (screen.path for screen in screens() if screen.is_form and "{" not in screen.path)
    for section in by_hand_of(made):
        if section in BY_MEMBER:
            yield from (f"{form_path(section)}?name={member}" for member in members_of(made, section))
        elif form_path(section).startswith("/declared/"):
            yield form_path(section)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = tmp_path_factory.mktemp("hostile") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as made:
        record(made, ("ada", "identify", {"email": "ada@x.io"}))
        yield made


@pytest.fixture(scope="module")
def admin(engine: Engine) -> TestClient:
    return signed_in(engine)


def typed(markup: str) -> set[str]:
    """The names of the fields in which somebody may type any text."""
    kinds = {None, "text", "search"}
    return {
        str(attributes["name"])
        for tag, attributes in elements(markup)
        if "name" in attributes and (tag == "textarea" or (tag == "input" and attributes.get("type") in kinds))
    } - {"q"}


PARTS = {
    screen.path: tuple(name for name, part in screen.parts.items() if not part.is_document) for screen in screens()
}
"""But for the mails that are being written: documents of their own, in frames that run nothing."""


@pytest.mark.parametrize("path", [*forms()])
def test_hostile_texts_in_all_fields_at_once_are_texts_in_each_part(
    engine: Engine, admin: TestClient, path: str
) -> None:
    shown = admin.get(path).text
    if not typed(shown):  # a list or mapping without an entry
        add = {"_csrf": csrf_of(admin, engine), "_do": f"{ADD}{PREFIX}.{VALUE}"}
        shown = admin.post(path, data=Sent(shown).fields | add).text
    sent, names = Sent(shown).fields, typed(shown)
    assert names, "there is something to be typed"
    parts = PARTS.get(path.partition("?")[0], ("panel", "checked", "preview"))
    for text in SOME:
        data = {**sent, **dict.fromkeys(names, text), "_csrf": csrf_of(admin, engine)}
        for part in ("", *parts):
            answer = admin.post(path, params={"part": part} if part else {}, data=data)
            assert answer.status_code < 500, (part, text, answer.text[-300:])
            assert unsafe(answer.text) == [], (part, text)


@pytest.mark.parametrize("path", [screen.path for screen in screens() if "{" not in screen.path])
def test_hostile_texts_that_a_list_is_asked_for_are_texts(admin: TestClient, path: str) -> None:
    names = typed(admin.get(path).text)
    for text in SOME[::2]:
        answer = admin.get(path, params={**dict.fromkeys(names, text), "name": text, "part": ""})
        assert answer.status_code < 500, (text, answer.text[-300:])
        assert unsafe(answer.text) == [], text


@pytest.mark.parametrize(
    "text", [*SOME, "../../etc/passwd", 'a"; filename="b.csv', "x\r\nset-cookie: a=b", "a" * 5_000]
)
def test_a_file_with_a_hostile_name_is_listed_by_it_or_refused(engine: Engine, admin: TestClient, text: str) -> None:
    form = {"_csrf": csrf_of(admin, engine)}
    answer = admin.post("/imports", data=form, files={"file": (text or "empty", b"user_id,plan\nada,pro\n")})
    assert answer.status_code in (303, 400), answer.text
    listed = admin.get("/imports").text
    assert unsafe(listed) == []
    if answer.status_code == 303 and (path := answer.headers["location"]) != "/imports":
        assert "\r" not in path
        page = admin.get(path)
        assert page.status_code == 200
        assert unsafe(page.text) == []
        admin.post(f"{path}/remove", data=form)
