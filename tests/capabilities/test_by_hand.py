"""Definitions that are made by hand: versions of one text in the store, beside files that keep what they declare."""

from __future__ import annotations

from pathlib import Path

import pytest

import threadline
from tests.by_hand_stage import FILE, Process, made_of
from threadline.app import composition
from threadline.capabilities.foundation.definitions.document import BY_HAND
from threadline.capabilities.foundation.definitions.splicing import removed, spliced
from threadline.capabilities.foundation.definitions.versions import Version, newest, puts
from threadline.kernel.errors import Conflict, InvalidDefinition, LimitExceeded, NotFound
from threadline.kernel.store import Batch
from threadline.settings import Settings
from threadline.stores.memory import MemoryStore

FILES = "segments:\n  big: {when: {field: features.monetary_total, greater_than: 50}}\n"
VIP = "when: {field: tags, contains: vip}  # of the sale\n"
GOLD = "when: {field: segments.vip.since, exists: true}\n"
ALL = "when: {field: tags, exists: true}\n"
MAIL = """mail:
  senders: {shop: {from: shop@example.com}}
  templates: {receipt: {subject: Thanks, text: "Hello {{ person.id }}"}}
"""


def test_a_declared_definition_is_in_force_in_a_version_that_says_who_and_what() -> None:
    process = Process(MemoryStore(), FILES)
    done = process.ask("definitions_declare", section="segments", name="vip", text=VIP, note="for the sale")
    assert (done["version"], process.segments()) == (1, ["big", "vip"])
    listed = process.ask("definitions_versions")
    assert (listed["in_force"], listed["here"], listed["next"]) == (1, 1, 0)
    (version,) = listed["versions"]
    assert (version["by"], version["note"], version["changed"]) == ("olga", "for the sale", 1)
    assert version["changes"] == [{"change": "added", "section": "segments", "name": "vip"}]
    assert process.ask("definitions_version", version=1)["text"] == f"segments:\n  vip:\n    {VIP}"
    shown = process.ask("definitions_show", section="segments", name="vip")
    assert (shown["text"], shown["file"]) == (VIP, "")
    assert process.ask("definitions_show", section="segments", name="big")["file"] == f"{FILE}:2"


def test_an_accepted_proposal_is_in_force_and_gone_and_its_version_names_who_proposed_it() -> None:
    process = Process(MemoryStore(), FILES)
    process.ask("definitions_propose", section="segments", name="vip", text=VIP, note="please", source="mara")
    process.ask("definitions_accept", section="segments", name="vip")
    assert (process.segments(), process.ask("definitions_proposals")["proposals"]) == (["big", "vip"], [])
    (version,) = process.ask("definitions_versions")["versions"]
    assert (version["by"], version["proposed_by"], version["note"]) == ("olga", "mara", "please")


def test_the_same_again_makes_no_version_and_settles_what_is_proposed() -> None:
    process = Process(MemoryStore(), FILES)
    for _ in range(2):
        process.ask("definitions_propose", section="segments", name="vip", text=VIP)
        assert process.ask("definitions_declare", section="segments", name="vip", text=VIP)["version"] == 1
        assert process.ask("definitions_proposals")["proposals"] == []


@pytest.mark.parametrize("operation", ["definitions_declare", "definitions_propose", "definitions_delete"])
def test_what_a_file_declares_is_changed_there_alone(operation: str) -> None:
    process = Process(MemoryStore(), FILES)
    text = {} if operation == "definitions_delete" else {"text": VIP}
    with pytest.raises(Conflict, match=f"'big' is declared at {FILE}:2, and files keep what they declare"):
        process.ask(operation, section="segments", name="big", **text)
    assert newest(process.store).number == 0


def test_a_name_that_was_taken_out_of_the_file_just_now_is_made_by_hand_in_one_step() -> None:
    process = Process(MemoryStore(), FILES)
    process.files = ""
    process.ask("definitions_declare", section="segments", name="big", text=VIP)
    assert process.segments() == ["big"]


def test_one_name_in_both_is_an_error_at_start_that_says_what_to_do() -> None:
    process = Process(MemoryStore())
    process.ask("definitions_declare", section="segments", name="big", text=VIP)
    with pytest.raises(InvalidDefinition) as raised:
        Process(process.store, FILES)
    assert str(raised.value) == (
        f"{BY_HAND}:2: segment 'big' is also declared at {FILE}:2; take it out of that file, or out of the store with "
        "`threadline definitions delete segments big` (`threadline definitions export` keeps a copy)"
    )


def test_a_section_without_names_is_put_in_force_whole() -> None:
    process = Process(MemoryStore())
    process.ask("definitions_declare", section="points", name="points", text="expires_after: 1y\n")
    assert newest(process.store).text == "points:\n  expires_after: 1y\n"
    (version,) = process.ask("definitions_versions")["versions"]
    assert version["changes"] == [{"change": "added", "section": "points", "name": "points"}]
    process.ask("definitions_delete", section="points", name="points")
    assert newest(process.store).text == ""


def test_a_sender_that_is_made_by_hand_names_no_file_with_a_key() -> None:
    text = "from: a@example.com\ndkim: {selector: s1, key_file: key.pem}\n"
    with pytest.raises(InvalidDefinition, match="what is made by hand lies in no folder"):
        Process(MemoryStore()).ask("definitions_declare", section="mail.senders", name="shop", text=text)


# --- inside of a section that is declared once -----------------------------------------------------


def test_a_template_is_made_by_hand_beside_the_senders_of_a_file() -> None:
    process = Process(MemoryStore(), MAIL)
    text = "subject: Welcome\ntext: Hello\n"
    process.ask("definitions_declare", section="mail.templates", name="welcome", text=text)
    templates = [template["name"] for template in process.ask("mail_templates")["templates"]]
    assert templates == ["receipt", "welcome"]
    assert (
        newest(process.store).text == "mail:\n  templates:\n    welcome:\n      subject: Welcome\n      text: Hello\n"
    )
    (version,) = process.ask("definitions_versions")["versions"]
    assert version["changes"] == [{"change": "added", "section": "mail.templates", "name": "welcome"}]
    with pytest.raises(Conflict, match=f"'receipt' is declared at {FILE}:3"):
        process.ask("definitions_declare", section="mail.templates", name="receipt", text=text)


def test_a_mistake_in_a_section_of_two_texts_stands_where_it_was_written() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        made_of(f"{MAIL}  caps: [{{mails: none, per: 1d}}]\n", "# ours\nmail: {templates: {x: {subject: 3}}}\n")
    places = sorted(line.split(": ")[0] for line in str(raised.value).split("\n"))
    assert places == [f"{BY_HAND}:2", f"{FILE}:4"]


def test_a_template_in_both_is_named_with_both_places() -> None:
    with pytest.raises(InvalidDefinition, match=rf"{BY_HAND}:3: `mail.templates.receipt` is also declared at {FILE}:3"):
        made_of(MAIL, "mail:\n  templates:\n    receipt: {subject: x, text: y}\n")


def test_a_template_that_is_made_by_hand_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("a secret")
    process = Process(MemoryStore(), MAIL)
    for text in ("subject: x\ntext: secret.txt\n", "subject: x\ntext: \"{% include 'secret.txt' %}\"\n"):
        for operation in ("definitions_declare", "definitions_propose"):
            with pytest.raises(InvalidDefinition, match="lies in no folder; write the text itself"):
                process.ask(operation, section="mail.templates", name="welcome", text=text)


def test_a_topic_is_made_by_hand_and_deleted() -> None:
    process = Process(MemoryStore(), "consent: {brand: Shop}\n")
    process.ask("definitions_declare", section="consent.topics", name="news", text="title: News\n")
    assert [topic["name"] for topic in process.ask("consent_topics")["topics"]] == ["news"]
    process.ask("definitions_delete", section="consent.topics", name="news")
    assert newest(process.store).text == ""


# --- back, away, and together ----------------------------------------------------------------------


def test_going_back_is_a_new_version_that_was_shown_before() -> None:
    process = Process(MemoryStore(), FILES)
    process.ask("definitions_declare", section="segments", name="vip", text=VIP)
    process.ask("definitions_declare", section="segments", name="vip", text=ALL)
    process.ask("definitions_declare", section="segments", name="new", text=GOLD)
    shown = process.ask("definitions_preview_go_back", version=1)
    assert shown["changes"] == [
        {"change": "removed", "section": "segments", "name": "new"},
        {"change": "changed", "section": "segments", "name": "vip"},
    ]
    assert (shown["in_force"], shown["problems"]) == (3, [])
    assert f"+    {VIP.strip()}" in shown["difference"]
    done = process.ask("definitions_go_back", version=1, seen=3, note="as it was")
    assert (done["version"], process.segments()) == (4, ["big", "vip"])
    newest_one = process.ask("definitions_versions")["versions"][0]
    assert (newest_one["restores"], newest_one["note"], newest_one["changed"]) == (1, "as it was", 2)
    assert newest(process.store).text == process.ask("definitions_version", version=1)["text"]
    with pytest.raises(Conflict, match="version 3 is in force no more"):
        process.ask("definitions_go_back", version=2, seen=3)
    with pytest.raises(NotFound, match="no version 9"):
        process.ask("definitions_go_back", version=9)


def test_a_version_that_does_not_go_with_the_files_any_more_is_not_gone_back_to() -> None:
    process = Process(MemoryStore())
    process.ask("definitions_declare", section="segments", name="big", text=VIP)
    process.ask("definitions_delete", section="segments", name="big")
    process.files = FILES
    (problem,) = process.ask("definitions_preview_go_back", version=1)["problems"]
    assert "also declared at" in problem
    with pytest.raises(InvalidDefinition, match="also declared at"):
        process.ask("definitions_go_back", version=1)
    assert newest(process.store).number == 2


def test_what_is_still_used_is_not_deleted_and_says_by_what() -> None:
    process = Process(MemoryStore())
    process.ask("definitions_declare", section="segments", name="vip", text=VIP)
    process.ask("definitions_declare", section="segments", name="gold", text=GOLD)
    with pytest.raises(Conflict, match=rf"'vip' is still used: {BY_HAND}:\d: segment 'gold'"):
        process.ask("definitions_delete", section="segments", name="vip")
    process.ask("definitions_delete", section="segments", name="gold")
    process.ask("definitions_delete", section="segments", name="vip")
    assert (newest(process.store).text, process.segments()) == ("", [])
    with pytest.raises(NotFound, match="'vip' is not made by hand"):
        process.ask("definitions_delete", section="segments", name="vip")


def test_of_two_processes_that_change_something_at_once_both_changes_stay() -> None:
    store = MemoryStore()
    one, other = Process(store), Process(store)
    one.ask("definitions_declare", section="segments", name="vip", text=VIP)
    other.ask("definitions_declare", section="segments", name="all", text="when: {field: tags, exists: true}\n")
    assert (other.segments(), other.engine.maintenance.by_hand) == (["all", "vip"], 2)
    assert one.segments() == ["vip"]
    one.following.look()
    assert (one.segments(), one.engine.maintenance.by_hand) == (["all", "vip"], 2)
    assert one.engine.maintenance.fingerprint == other.engine.maintenance.fingerprint


def test_a_process_with_files_that_do_not_go_with_it_stays_as_it_is_and_tells_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    one, other = Process(store, FILES), Process(store)
    other.ask("definitions_declare", section="segments", name="big", text=VIP)
    for _ in range(2):
        one.following.look()
    assert (one.engine.maintenance.by_hand, len(caplog.messages)) == (0, 1)
    assert f"version 1 of what is made by hand is not in force here, the one before stays: {BY_HAND}:2" in caplog.text


def test_a_proposal_that_was_made_anew_is_not_accepted_unseen() -> None:
    process = Process(MemoryStore(), FILES)
    proposed = process.ask("definitions_propose", section="segments", name="vip", text=VIP)
    process.ask("definitions_propose", section="segments", name="vip", text=ALL)
    with pytest.raises(Conflict, match="proposed anew meanwhile"):
        process.ask("definitions_accept", section="segments", name="vip", seen=proposed["at"])
    assert newest(process.store).number == 0


def test_all_that_is_made_by_hand_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.capabilities.foundation.definitions.versions.DEFINITIONS_BY_HAND_BYTES_MAX", 40)
    process = Process(MemoryStore())
    with pytest.raises(LimitExceeded, match="more than 40 bytes"):
        process.ask("definitions_declare", section="segments", name="vip", text=VIP)


def test_a_long_text_comes_back_as_it_was() -> None:
    store, text = MemoryStore(), "# Ünïcödé ✓ \n" * 20_000
    store.commit([Batch(writes=puts(Version(number=1, by="olga", at=1), text))])
    assert newest(store).text == text


# --- the text --------------------------------------------------------------------------------------

TEXT = """# ours
segments:
  # of the sale
  vip:
    when: {field: tags, contains: vip}  # a tag

  # the others
  rest: {when: {field: tags, exists: false}}
mail:
  templates:
    welcome: {subject: x, text: y}
"""


def test_a_definition_is_taken_out_with_its_comments_and_nothing_else() -> None:
    assert removed(TEXT, ("segments", "vip")) == TEXT.replace(TEXT[TEXT.index("  # of") : TEXT.index("  # the")], "\n")
    assert removed(TEXT, ("mail", "templates", "welcome")) == TEXT[: TEXT.index("mail:")]
    assert removed("segments: {a: {when: 1}, b: {when: 2}}\n", ("segments", "a")) is None


def test_what_is_put_in_and_taken_out_leaves_the_text_as_it_was() -> None:
    with_more = spliced(TEXT, ("segments", "more"), VIP)
    assert with_more is not None
    assert removed(with_more, ("segments", "more")) == TEXT


# --- who opens a store -----------------------------------------------------------------------------


def put_by_hand(path: Path, text: str) -> None:
    """Into an embedded store, as a server would."""
    with threadline.open(path) as opened:
        number = newest(opened.engine.store).number + 1
        opened.engine.store.commit([Batch(writes=puts(Version(number=number, by="olga", at=1), text))])


def test_an_embedded_store_goes_by_what_is_made_by_hand_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    put_by_hand(path, f"segments: {{vip: {{{VIP.partition('  #')[0]}}}}}\n")
    (tmp_path / "threadline.yaml").write_text("segments: {gold: {when: {field: segments.vip.since, exists: true}}}\n")
    with threadline.open(path) as opened:
        assert {each.name for each in opened.segments.list().segments} == {"gold", "vip"}
    with threadline.open(path, readonly=True) as opened:
        assert {each.name for each in opened.segments.list().segments} == {"gold", "vip"}
    settings = Settings(store=str(path))
    assert "vip" in composition().in_force(settings).definitions.contents()["segments"]  # type: ignore[attr-defined]


def test_a_mistake_in_files_closes_a_store_that_is_there_and_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    (tmp_path / "threadline.yaml").write_text("segments: {gold: {when: {field: segments.vip.since, exists: true}}}\n")
    with pytest.raises(InvalidDefinition):
        threadline.open(path)
    assert not path.exists()
    (tmp_path / "threadline.yaml").unlink()
    put_by_hand(path, "segments: {gold: {when: {field: tags, exists: true}}}\n")
    (tmp_path / "threadline.yaml").write_text(FILES.replace("big", "gold"))
    with pytest.raises(InvalidDefinition, match="threadline definitions delete segments gold"):
        threadline.open(path)
    (tmp_path / "threadline.yaml").unlink()
    threadline.open(path).close()
