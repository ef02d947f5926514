"""Signed tokens: whatever this store has not signed for a purpose reads as nothing; what it has, reads for ever."""

from __future__ import annotations

import string
from base64 import urlsafe_b64decode
from pathlib import Path
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from threadline.engine.maintenance.move import Move
from threadline.engine.public_address import PublicAddress
from threadline.engine.signer import SIGNING_KEY, Signer
from threadline.kernel.errors import Conflict, InvalidSetting, InvalidValue
from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.backup import back_up, restore
from threadline.stores.sqlite.store import SqliteStore

VALUES = st.lists(st.text(max_size=200) | st.integers(-(2**63), 2**63 - 1), max_size=5)
PURPOSES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=20)
TOKEN_LENGTH = 64


def signed() -> tuple[Signer, str]:
    """A signer, and a token of its own."""
    signer = Signer(MemoryStore())
    token = signer.sign("unsubscribe", "default", "ada@example.com", "news")
    assert len(token) == TOKEN_LENGTH
    return signer, token


@given(PURPOSES, st.text(max_size=30), VALUES)
def test_a_token_reads_as_what_was_signed_and_names_nothing_to_others(purpose, workspace, values):
    signer = Signer(MemoryStore())
    token = signer.sign(purpose, workspace, *values)
    assert signer.read(purpose, token) == (workspace, tuple(values))
    assert signer.sign(purpose, workspace, *values) == token
    assert set(token) <= set(string.ascii_letters + string.digits + "-_")
    assert signer.read(f"{purpose}x", token) is None
    assert Signer(MemoryStore()).read(purpose, token) is None
    decoded = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for value in values:
        if isinstance(value, str) and len(value) > 4:
            assert value.encode("utf-8", "surrogatepass") not in decoded


@given(st.data())
def test_a_changed_token_is_none_of_ours(data):
    signer, token = signed()
    place = data.draw(st.integers(0, TOKEN_LENGTH - 1))
    letter = data.draw(st.sampled_from(string.ascii_letters + string.digits + "-_"))
    changed = token[:place] + letter + token[place + 1 :]
    assert changed == token or signer.read("unsubscribe", changed) is None
    cut = data.draw(st.integers(0, TOKEN_LENGTH - 1))
    assert signer.read("unsubscribe", token[:cut]) is None
    assert signer.read("unsubscribe", token + letter) is None


@given(st.text(max_size=120) | st.text("ABCab-_=01", max_size=120))
def test_anything_else_is_no_token(text):
    assert signed()[0].read("unsubscribe", text) is None


@pytest.mark.parametrize("around", ["{}\n", "{}=", " {}", "{}{}"])
def test_a_text_that_is_nearly_a_token_is_none(around):
    signer, token = signed()
    assert signer.read("unsubscribe", around.format(token, token)) is None


@pytest.mark.parametrize("text", ["", "A" * 5_000, "é" * 40, "\ud800" * 30])
def test_a_text_that_is_far_from_a_token_is_none(text):
    assert signed()[0].read("unsubscribe", text) is None


def test_values_that_look_alike_have_tokens_apart():
    sign = Signer(MemoryStore()).sign
    assert len({sign("a", "w", "1"), sign("a", "w", 1), sign("a", "w1"), sign("aw", "1")}) == 4


def test_a_payload_beyond_the_limit_and_a_purpose_without_a_name_are_refused():
    signer = Signer(MemoryStore())
    with pytest.raises(InvalidValue):
        signer.sign("unsubscribe", "default", "x" * 4_000)
    for purpose in ("", "a\0b"):
        with pytest.raises(InvalidValue):
            signer.sign(purpose, "default")


def test_tokens_of_earlier_keys_stay_valid_after_a_rotation_by_another_process():
    store = MemoryStore()
    here, there = Signer(store), Signer(store)
    before = here.sign("u", "w", "ada")
    assert there.rotate() == 2
    after = there.sign("u", "w", "ada")
    assert after != before
    for signer in (here, there, Signer(store)):
        assert [signer.read("u", token) for token in (before, after)] == [("w", ("ada",))] * 2


def test_a_rotation_that_another_one_overtakes_is_a_conflict(monkeypatch):
    store = MemoryStore()
    signer, other = Signer(store), Signer(store)
    assert signer.read("u", signer.sign("u", "w")) is not None
    commit = store.commit

    def overtaken(batches):
        monkeypatch.setattr(store, "commit", commit)
        other.rotate()
        return commit(batches)

    monkeypatch.setattr(store, "commit", overtaken)
    with pytest.raises(Conflict):
        signer.rotate()


def test_processes_that_sign_first_at_once_share_one_key():
    store = MemoryStore()
    signers = [Signer(store) for _ in range(8)]
    together = Barrier(len(signers))
    tokens: list[str] = []

    def sign(signer: Signer) -> None:
        together.wait()
        tokens.append(signer.sign("u", "w", "ada"))

    threads = [Thread(target=sign, args=(signer,)) for signer in signers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 8
    assert len(set(tokens)) == 1


def _moved(source: Store, target: Store) -> Store:
    Move(source, target, staging.engine().catalogue, "source").run()
    return target


def test_the_key_survives_move_backup_and_restore(tmp_path: Path):
    source = SqliteStore(tmp_path / "first.db")
    token = Signer(source).sign("u", "w", "ada")
    assert SIGNING_KEY in source.tables()
    moved = _moved(source, SqliteStore(tmp_path / "second.db"))
    assert Signer(moved).read("u", token) == ("w", ("ada",))
    moved.close()
    source.close()
    back_up(tmp_path / "first.db", tmp_path / "copy.db", lambda done, total: None)
    restore(tmp_path / "copy.db", tmp_path / "third.db", lambda done, total: None)
    restored = SqliteStore(tmp_path / "third.db")
    assert Signer(restored).read("u", token) == ("w", ("ada",))
    restored.close()


@pytest.mark.parametrize(
    "text",
    [
        "example.com",
        "ftp://example.com",
        "https://",
        "https://a:b@example.com",
        "https://a.example/?x=1",
        "https://[::1",
        "https://a.example/#x",
        " https://a.example",
        "https://a.example:99999",
        "javascript:alert(1)",
    ],
)
def test_a_public_url_that_is_no_address_is_refused(text):
    with pytest.raises(InvalidSetting, match="public_url"):
        PublicAddress(text)


def test_links_begin_with_the_public_url_else_with_the_local_server_else_are_refused():
    unknown = PublicAddress("")
    with pytest.raises(InvalidSetting, match="public_url") as refused:
        unknown.url("/u/x")
    assert "THREADLINE_PUBLIC_URL" in refused.value.hint
    unknown.use_local("http://127.0.0.1:8787")
    assert (unknown.url("/u/x"), unknown.is_local) == ("http://127.0.0.1:8787/u/x", True)
    public = PublicAddress("https://a.example/mail/")
    public.use_local("http://127.0.0.1:8787")
    assert (public.url("/u/x"), public.is_local) == ("https://a.example/mail/u/x", False)
