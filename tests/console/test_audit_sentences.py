"""The audit log in words: who did what to whom, with the entry itself to open."""

from __future__ import annotations

import html
from typing import Any

import pytest

from tests.console.stage import HOSTILE, close_up, csrf_of, opened, record, signed_in, unsafe
from threadline.surfaces.console.audit_sentences import audit_sentence, person_of


def entry(
    operation: str, outcome: str = "done", /, about: dict[str, str] | None = None, **given: Any
) -> dict[str, Any]:
    return {"operation": operation, "outcome": outcome, "object": about or {}, "given": given}


@pytest.mark.parametrize(
    ("it", "said"),
    [
        (
            entry("definitions_accept", about={"section": "segments", "name": "vip"}),
            "Put the proposed segment vip in force",
        ),
        (entry("rules_activate", about={"id": "big"}, version=2), "Activated version 2 of the rule big"),
        (
            entry("rules_activate", "conflict", about={"id": "big"}, version=2),
            "Not done: activated version 2 of the rule big",
        ),
        (entry("people_tag", about={"id": "user_id:ada"}, add=["vip", "new"]), "Tagged vip, new"),
        (entry("people_tag", about={"id": "user_id:ada"}, remove=["vip"]), "Removed the tag vip"),
        (entry("people_tag", about={"id": "ada"}, add="list of 90"), "Add tags to a person: ada"),
        (entry("quarantine_review", about={"id": "j"}, join=False), "Decided on a join in doubt, joined: no"),
        (entry("points_adjust", about={"id": "ada"}, points=1_500), "Changed the balance by 1,500 points"),
        (entry("keys_create", name="shop", kind="write_key"), "Created the write key shop"),
        (entry("accounts_change", about={"name": "text of 12"}), "Give an account another role"),
        (entry("no_such_operation", about={"id": "<b>"}), "No such operation: <b>"),
    ],
)
def test_an_entry_is_a_sentence_of_what_it_has(it: dict[str, Any], said: str) -> None:
    with opened() as engine:
        operations = {each.name: each for each in engine.catalogue.operations}
    assert audit_sentence(it, operations.get(it["operation"])) == said


def test_every_sentence_is_of_an_operation_and_of_its_parameters() -> None:
    with opened() as engine:
        operations = {each.name: each for each in engine.catalogue.operations}
    with_sentences = [operation for operation in operations.values() if operation.done]
    assert len(with_sentences) > 50
    for operation in with_sentences:
        fields = operation.params.__struct_encode_fields__
        for pattern in operation.done:
            assert {part.partition("}")[0] for part in pattern.split("{")[1:]} <= {*fields}, operation.name
        assert operation.is_audited, operation.name


def test_whom_an_entry_is_about_is_whom_its_path_names() -> None:
    with opened() as engine:
        operations = {each.name: each for each in engine.catalogue.operations}
    about = {"id": "user_id:ada"}
    assert person_of(entry("people_tag", about=about), operations["people_tag"]) == "user_id:ada"
    assert person_of(entry("rules_activate", about={"id": "big"}), operations["rules_activate"]) == ""
    assert person_of(entry("people_tag", about={"id": "text of 9"}), operations["people_tag"]) == ""
    assert person_of(entry("gone"), None) == ""


def test_the_audit_log_says_who_did_what_to_whom_and_has_the_entry_in_a_detail() -> None:
    with opened() as engine:
        record(engine, ("ada", "identify", {"first_name": "Ada"}))
        client = signed_in(engine)
        for ref in ("user_id:ada", "ada"):
            form = {"_csrf": csrf_of(client, engine), "id": ref, "add:list": "vip"}
            assert client.post("/do/people_tag", data=form).status_code == 303
        for text in HOSTILE:
            with_text = {"_csrf": csrf_of(client, engine), "id": text, "add:list": text}
            assert client.post("/do/people_tag", data=with_text).status_code < 500, text
        pages = [client.get("/audit?limit=50&object=user_id:ada").text, client.get("/audit").text]
    assert [unsafe(page) for page in pages] == [[], []]
    row = close_up(pages[0]).partition("<tbody>")[2].partition("</tr>")[0]
    outside, _, detail = row.partition('<details class="detail">')
    assert "Tagged vip" in outside
    assert ">Ada</a>" in outside
    assert ">console<" in outside
    assert "people_tag" not in outside
    assert "&quot;operation&quot;: &quot;people_tag&quot;" in detail
    assert "{" not in html.unescape(outside)
