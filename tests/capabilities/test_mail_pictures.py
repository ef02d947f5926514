"""Pictures of mails: what they are is read in their bytes, and they are the same on every store."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.capabilities.mail_stage import MailStage
from tests.capabilities.pictures import PICTURES
from tests.servers.dynamodb import ministack
from tests.servers.postgres import server, store_in
from threadline.capabilities.reach.mail.pictures import stored
from threadline.capabilities.reach.mail.pictures.content import Kind, kind_of
from threadline.capabilities.reach.mail.pictures.routes import ROUTE
from threadline.kernel.errors import Conflict, InvalidValue, LimitExceeded, NotFound
from threadline.kernel.limits import PICTURE_BYTES_MAX
from threadline.kernel.public_route import PublicRequest
from threadline.kernel.store import Store
from threadline.settings import Settings
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.backup import back_up
from threadline.stores.sqlite.store import SqliteStore
from threadline.surfaces.http.server.application import Application

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "shop.db"),
    "postgres": lambda folder: store_in(server("18"), folder),
    "dynamodb": lambda folder: ministack().open(folder),
}
SHOWING = """
mail:
  senders: {shop: {from: hello@shop.example}}
  templates:
    welcome:
      subject: Hi
      blocks: [{picture: {source: "SOURCE", alt: A shoe}}, {footer: {}}]
"""


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_of_each_kind_has_its_type_and_size(name: str) -> None:
    size = (1, 1) if name == "gif" else (3, 2)
    assert kind_of(PICTURES[name]) == Kind(name.split(maxsplit=1)[0], *size)


@given(st.sampled_from(sorted(PICTURES)), st.data())
def test_a_picture_that_is_cut_off_anywhere_is_refused(name: str, data: st.DataObject) -> None:
    content = PICTURES[name]
    length = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(InvalidValue):
        kind_of(content[:length])


@given(st.sampled_from(sorted(PICTURES)), st.binary(min_size=1, max_size=20))
def test_a_picture_with_something_behind_it_is_refused(name: str, more: bytes) -> None:
    if not (name == "jpg" and more.endswith(b"\xff\xd9")):
        with pytest.raises(InvalidValue):
            kind_of(PICTURES[name] + more)


@given(st.sampled_from(sorted(PICTURES)), st.data())
def test_a_picture_with_a_byte_changed_is_a_picture_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(PICTURES[name])
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidValue):
        assert kind_of(bytes(content)).type == name.split(maxsplit=1)[0]


SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.mark.parametrize(
    "content",
    [b"", SVG, b"<html>", b"\x89PNG", b"GIF89a", b"RIFF", b"BM" + bytes(60), b"\xff\xd8\xff\xd9", b"%PDF-1.7"],
)
def test_what_is_no_picture_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidValue):
        kind_of(content)


def test_a_picture_of_too_many_pixels_is_refused() -> None:
    content = PICTURES["gif"]
    with pytest.raises(InvalidValue, match="has 65,535 by 1 pixels"):
        kind_of(content[:6] + b"\xff\xff" + content[8:])


def large(seed: int, size: int) -> bytes:
    """A GIF of this size in bytes: blocks that say nothing, before its end."""
    content, random = PICTURES["gif"][:-1], Random(seed)
    while rest := size - len(content) - 1:
        length = min(255, rest - 4) if rest - 4 <= 255 or rest >= 264 else rest - 9
        content += b"\x21\xfe" + bytes([length]) + random.randbytes(length) + b"\0"
    return content + b"\x3b"


def add(stage: MailStage, name: str, content: bytes) -> str:
    id: str = stage.ask("mail_add_picture", name=name, content=b64encode(content).decode()).id
    return id


def shown(stage: MailStage, file: str) -> bytes | None:
    answer = ROUTE.answer(stage.engine, PublicRequest({"file": file}, {}, {}, b"", stage.now))
    return answer.body if answer.status == 200 else None


@pytest.mark.parametrize("store", sorted(STORES))
def test_a_picture_of_any_size_comes_back_as_it_was_until_it_is_deleted(store: str, tmp_path: Path) -> None:
    on = STORES[store](tmp_path)
    stage = MailStage(store=on)
    sizes = (42, stored.PART_BYTES - 1, stored.PART_BYTES, stored.PART_BYTES + 1, PICTURE_BYTES_MAX)
    contents = {add(stage, f"{size}.gif", large(size, size)): large(size, size) for size in sizes}
    assert len(contents) == len(sizes)
    assert {id: shown(stage, f"{id}.gif") for id in contents} == contents
    assert [picture.bytes for picture in stage.ask("mail_pictures").pictures] == [*reversed(sizes)]
    first, *rest = contents
    stage.ask("mail_delete_picture", id=first)
    assert shown(stage, f"{first}.gif") is None
    assert on.query(stored.CONTENT, first) == []
    assert all(shown(stage, f"{id}.gif") for id in rest)
    on.close()


def test_a_backup_has_the_pictures(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "shop.db")
    stage = MailStage(store=store)
    id = add(stage, "large.gif", large(1, 700_000))
    back_up(tmp_path / "shop.db", tmp_path / "copy.db", lambda done, total: None)
    store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    assert shown(MailStage(store=copy), f"{id}.gif") == large(1, 700_000)
    copy.close()


def test_the_same_file_is_one_picture_and_another_workspace_has_its_own() -> None:
    stage = MailStage()
    first, again = (add(stage, name, PICTURES["png"]) for name in ("a.png", "b.png"))
    assert first == again
    assert [picture.name for picture in stage.ask("mail_pictures").pictures] == ["a.png"]
    other = stored.id_of(stage.engine, "other", PICTURES["png"])
    assert other != first
    assert stored.id_of(MailStage().engine, "default", PICTURES["png"]) != first, "nobody can guess it from the file"


def test_a_picture_that_a_template_shows_is_in_the_mail_and_is_not_deleted() -> None:
    store = MemoryStore()
    id = add(MailStage(store=store), "shoe.png", PICTURES["png"])
    stage = MailStage(SHOWING.replace("SOURCE", f"picture:{id}.png"), store=store)
    [picture] = stage.ask("mail_pictures").pictures
    assert (picture.source, picture.used_by) == (f"picture:{id}.png", ["welcome"])
    html = stage.ask("mail_preview", template="welcome").html
    assert f'src="http://localhost:8787{picture.address}"' in html
    with pytest.raises(Conflict, match=r"'shoe\.png' is still used by welcome"):
        stage.ask("mail_delete_picture", id=id)
    MailStage(store=store).ask("mail_delete_picture", id=id)
    with pytest.raises(NotFound):
        MailStage(store=store).ask("mail_delete_picture", id=id)


def test_one_picture_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "PICTURES_MAX", 2)
    stage = MailStage()
    for number in range(2):
        add(stage, "a.gif", large(number, 1_000))
    with pytest.raises(LimitExceeded, match="has 2 pictures"):
        add(stage, "a.gif", large(3, 1_000))
    add(stage, "there already", large(0, 1_000))


@pytest.mark.parametrize("content", ["not base64!", "R0lGODlh", ""])
def test_what_is_no_picture_is_not_added(content: str) -> None:
    stage = MailStage()
    with pytest.raises((InvalidValue, ValueError)):
        stage.ask("mail_add_picture", name="a.gif", content=content)
    assert stage.ask("mail_pictures").pictures == []


def test_a_picture_is_served_for_ever_and_as_nothing_else() -> None:
    stage = MailStage()
    id = add(stage, "a.webp", PICTURES["webp"])
    client = TestClient(Application(stage.engine, Settings(access_log=False)))
    answer = client.get(f"/pictures/{id}.webp")
    assert (answer.status_code, answer.content) == (200, PICTURES["webp"])
    wanted = {
        "content-type": "image/webp",
        "cache-control": "public, max-age=31536000, immutable",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        "etag": f'"{id}.webp"',
    }
    assert {name: answer.headers[name] for name in wanted} == wanted
    again = client.get(f"/pictures/{id}.webp", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for file in (f"{id}.svg", id, "x.png", f"{id[:-1]}_.webp", "..%2Fx.png"):
        assert client.get(f"/pictures/{file}").status_code == 404
