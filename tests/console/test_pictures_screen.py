"""Pictures in the console: uploaded by a form as a browser sends it, seen, and deleted where nothing uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capabilities.pictures import PICTURES
from tests.console.stage import ORIGIN, csrf_of, elements, opened, signed_in
from threadline.kernel.limits import PICTURE_BYTES_MAX
from threadline.kernel.roles import Role

SHOWING = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates:
    hello: {subject: Hello, blocks: [{picture: {source: "picture:FILE"}}]}
"""
FORM = {"origin": ORIGIN}


def test_a_picture_that_is_uploaded_is_listed_and_shown_and_deleted() -> None:
    with opened() as engine:
        client = signed_in(engine, "marketer")
        fields = {"_csrf": csrf_of(client, engine), "_back": "/mail-pictures"}
        answer = client.post(
            "/do/mail_add_picture", data=fields, files={"file": ("a shoe.png", PICTURES["png"])}, headers=FORM
        )
        assert (answer.status_code, answer.headers["location"]) == (303, "/mail-pictures"), answer.text
        page = client.get("/mail-pictures").text
        assert "a shoe.png" in page
        [shown] = [given["src"] for tag, given in elements(page) if tag == "img" and "/pictures/" in str(given["src"])]
        assert client.get(str(shown)).content == PICTURES["png"]
        id = str(shown).rpartition("/")[2].partition(".")[0]
        answer = client.post("/do/mail_delete_picture", data={**fields, "id": id}, headers=FORM)
        assert answer.status_code == 303
        assert "There is no picture yet" in client.get("/mail-pictures").text
        entries, _ = engine.audit_log.page("default")
        done = [(entry.who, entry.operation, entry.outcome) for entry in entries if entry.operation.startswith("mail_")]
        assert done == [("marketer", "mail_delete_picture", "done"), ("marketer", "mail_add_picture", "done")]
        assert "content" not in entries[1].given


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("shoe.png", b"<svg onload=alert(1)>", "this is no PNG, JPEG, GIF or WebP"),
        ("../../shoe.png", PICTURES["png"][:-1], "this png is damaged"),
        ("large.gif", PICTURES["gif"] + bytes(PICTURE_BYTES_MAX), "up to 2,097,152 are taken"),
    ],
)
def test_a_file_that_is_no_picture_is_refused_with_the_reason(name: str, content: bytes, problem: str) -> None:
    with opened() as engine:
        client = signed_in(engine)
        fields = {"_csrf": csrf_of(client, engine), "_back": "/mail-pictures"}
        answer = client.post("/do/mail_add_picture", data=fields, files={"file": (name, content)}, headers=FORM)
        assert answer.status_code in (400, 413)
        assert problem in answer.text.replace("This", "this")
        assert "There is no picture yet" in client.get("/mail-pictures").text


@pytest.mark.parametrize("role", ["viewer", "support"])
def test_who_may_not_upload_sees_no_form_and_is_refused(role: Role) -> None:
    with opened() as engine:
        client = signed_in(engine, role)
        assert "multipart" not in client.get("/mail-pictures").text
        fields = {"_csrf": csrf_of(client, engine)}
        files = {"file": ("a.png", PICTURES["png"])}
        assert client.post("/do/mail_add_picture", data=fields, files=files, headers=FORM).status_code == 403


def test_a_form_with_a_file_from_elsewhere_is_refused() -> None:
    with opened() as engine:
        client = signed_in(engine)
        files = {"file": ("a.png", PICTURES["png"])}
        assert client.post("/do/mail_add_picture", data={"_csrf": "x"}, files=files, headers=FORM).status_code == 403
        foreign = {"origin": "https://elsewhere.example"}
        fields = {"_csrf": csrf_of(client, engine)}
        assert client.post("/do/mail_add_picture", data=fields, files=files, headers=foreign).status_code == 403


def test_a_mail_in_a_frame_shows_pictures_of_this_server_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(SHOWING.replace("FILE", f"{'0' * 32}.png"))
    with opened(file) as engine:
        engine.public_address.use_local("http://shop.example:8787")
        client = signed_in(engine)
        answer = client.get("/templates/hello?part=html")
        assert "img-src data: http://shop.example:8787/pictures/;" in answer.headers["content-security-policy"]
        assert f'src="http://shop.example:8787/pictures/{"0" * 32}.png"' in answer.text
