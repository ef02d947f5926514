"""Credentials: kept as hashes, found by their secret, apart by workspace, gone once revoked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.conftest import Clock
from threadline.app import open_engine
from threadline.engine.credentials import CREDENTIAL, CREDENTIAL_LIST, Credentials, hash_secret
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict, InvalidSetting, InvalidValue, NotFound, Unavailable
from threadline.kernel.store import Batch, Item, Key, Refusal, Store, scan_pages
from threadline.kernel.time import SECOND
from threadline.settings import Settings


def test_a_secret_opens_what_it_was_made_for(engine: Engine) -> None:
    made, secret = engine.credentials.create("default", "write_key", "shop")
    assert secret.startswith("wk_")
    found = engine.credentials.find(secret)
    assert found == made
    assert found is not None
    assert (found.name, found.workspace, found.records) == ("shop", "default", True)
    assert not found.allows("read")
    assert engine.credentials.find(secret + "x") is None
    assert engine.credentials.find("") is None


def test_the_secret_is_nowhere_in_the_store(engine: Engine) -> None:
    _, secret = engine.credentials.create("default", "token", "me", ["read"])
    items = [item for table in (CREDENTIAL, CREDENTIAL_LIST) for item in scan_pages(engine.store, table)]
    assert len(items) >= 2
    for item in items:
        assert secret.encode() not in item.value
        assert secret not in "".join(item.key)
    assert any(hash_secret(secret) == item.key.partition for item in items)


def test_admin_includes_the_other_scopes(engine: Engine) -> None:
    made, _ = engine.credentials.create("default", "token", "me", ["admin"])
    assert all(made.allows(scope) for scope in ("read", "write", "admin"))
    reader, _ = engine.credentials.create("default", "token", "you", ["read"])
    assert not reader.records
    assert not reader.allows("admin")


def test_revoking_works_at_once_here_and_after_the_cache_elsewhere(engine: Engine, clock: Clock) -> None:
    elsewhere = Credentials(engine.store, clock)
    made, secret = engine.credentials.create("default", "write_key", "shop")
    assert elsewhere.find(secret) is not None
    engine.credentials.revoke("default", made.id)
    assert engine.credentials.find(secret) is None
    assert elsewhere.find(secret) is not None
    clock.now += round(elsewhere.cache_seconds * SECOND)
    assert elsewhere.find(secret) is None
    assert engine.credentials.entries("default") == []


class Between:
    """A store in which something happens right after the next read, before its reader knows the answer."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.then: Callable[[], object] | None = None

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        found = self.store.get(keys)
        then, self.then = self.then, None
        if then is not None:
            then()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def test_what_was_read_before_a_change_is_not_believed_after_it(engine: Engine, clock: Clock) -> None:
    store = Between(engine.store)
    credentials = Credentials(store, clock)  # type: ignore[arg-type]  # it answers what a store does
    made, secret = credentials.create("default", "write_key", "shop")

    store.then = lambda: credentials.revoke("default", made.id)
    assert credentials.find(secret) is not None, "it asked before"
    assert credentials.find(secret) is None

    store.then = lambda: credentials.create("default", "write_key", "shop", secret=secret + "2")
    assert credentials.find(secret + "2") is None, "it asked before"
    assert credentials.find(secret + "2") is not None


def test_a_revocation_whose_outcome_nobody_knows_is_looked_up_again(engine: Engine, clock: Clock) -> None:
    class Lost(Between):
        def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
            self.store.commit(batches)
            raise Unavailable("the connection broke")

    credentials = engine.credentials
    made, secret = credentials.create("default", "write_key", "shop")
    assert credentials.find(secret) is not None
    credentials.store = Lost(engine.store)  # type: ignore[assignment]  # as above
    with pytest.raises(Unavailable):
        credentials.revoke("default", made.id)
    assert credentials.find(secret) is None


def test_a_guess_that_was_refused_is_good_once_it_is_made(engine: Engine) -> None:
    assert engine.credentials.find("wk_mine") is None
    engine.credentials.create("default", "write_key", "shop", secret="wk_mine")
    assert engine.credentials.find("wk_mine") is not None


def test_workspaces_are_apart(engine: Engine) -> None:
    made, _ = engine.credentials.create("one", "write_key", "shop")
    engine.credentials.create("two", "write_key", "shop")
    assert [c.id for c in engine.credentials.entries("one")] == [made.id]
    with pytest.raises(NotFound):
        engine.credentials.revoke("two", made.id)


def test_a_store_that_has_no_key_yet_says_so(engine: Engine, clock: Clock) -> None:
    assert not engine.credentials.has_any()
    made, _ = engine.credentials.create("default", "write_key", "shop")
    assert engine.credentials.has_any()
    engine.credentials.revoke("default", made.id)
    assert engine.credentials.has_any(), "whoever revoked the last one does not want a new one printed"
    assert open_engine("memory:", Settings(tokens="ops=a-long-token"), clock).credentials.has_any()


def test_what_cannot_be_is_refused(engine: Engine) -> None:
    create = engine.credentials.create
    with pytest.raises(InvalidValue, match="scope"):
        create("default", "token", "me", ["everything"])
    with pytest.raises(InvalidValue, match="at least one scope"):
        create("default", "token", "me")
    with pytest.raises(InvalidValue, match="may only record"):
        create("default", "write_key", "me", ["read"])
    with pytest.raises(InvalidValue, match="name"):
        create("default", "write_key", "")
    for workspace in ("a\nb", "team/a", "", "w" * 101):
        with pytest.raises(InvalidValue, match="workspace"):
            create(workspace, "write_key", "me")
    create("default", "write_key", "me", secret="same")
    with pytest.raises(Conflict):
        create("default", "write_key", "me", secret="same")


def test_the_settings_may_give_some(clock: Clock) -> None:
    engine = open_engine("memory:", Settings(write_keys="plain-key, web=key2-long", tokens="ops=tok-long"), clock)
    key, web, token = (engine.credentials.find(secret) for secret in ("plain-key", "key2-long", "tok-long"))
    assert key is not None
    assert web is not None
    assert token is not None
    assert (key.name, web.name, token.name) == ("default", "web", "ops")
    assert token.allows("admin")
    assert not web.scopes
    assert engine.credentials.has_any()


@pytest.mark.parametrize(
    ("text", "name", "secret"),
    [
        ("c2VjcmV0LXRva2Vu9Q==", "settings", "c2VjcmV0LXRva2Vu9Q=="),
        ("ops=c2VjcmV0LXRva2Vu9Q==", "ops", "c2VjcmV0LXRva2Vu9Q=="),
        ("q83vEjRWeJq83vEjRWeJq83vEjRWeJq83vEjRWeJq80=", "settings", "q83vEjRWeJq83vEjRWeJq83vEjRWeJq83vEjRWeJq80="),
        ("ab+/cd=efgh", "settings", "ab+/cd=efgh"),
        ("night shift=long-enough", "night shift", "long-enough"),
        ("ops=a=b=c=d=e", "ops", "a=b=c=d=e"),
    ],
)
def test_an_equals_sign_may_belong_to_the_secret(text: str, name: str, secret: str, clock: Clock) -> None:
    engine = open_engine("memory:", Settings(tokens=text), clock)
    found = engine.credentials.find(secret)
    assert found is not None
    assert found.name == name
    for other in ("=", "==", "", secret.rstrip("=") + "_"):
        assert engine.credentials.find(other) is None


@pytest.mark.parametrize(
    "text",
    [
        "=",
        "==",
        "admin=",
        "admin==",
        "=long-enough-but-whose",
        "long-enough-1,ops=short",
        "seven77",
        "admin=        ",
        "monitoring-of-production=",
        "customer-support-team==",
        "backend=",
    ],
)
@pytest.mark.parametrize("setting", ["tokens", "write_keys"])
def test_a_secret_that_is_missing_or_short_is_refused_and_not_told(text: str, setting: str, clock: Clock) -> None:
    with pytest.raises(InvalidSetting, match=f"{setting}: number [12] has no secret of at least 8") as refused:
        open_engine("memory:", Settings(**{setting: text}), clock)
    assert text not in str(refused.value)


@pytest.mark.parametrize(
    ("write_keys", "tokens", "message"),
    [
        ("web=the-same-one", "the-same-one", "tokens: 'settings' has the same secret as 'web' in write_keys"),
        ("web=the-same-one,ios=the-same-one", "", "write_keys: 'ios' has the same secret as 'web' in write_keys"),
        ("", "ops=the-same-one, the-same-one", "tokens: 'settings' has the same secret as 'ops' in tokens"),
    ],
)
def test_no_secret_is_of_two(write_keys: str, tokens: str, message: str, clock: Clock) -> None:
    with pytest.raises(InvalidSetting, match=message) as refused:
        open_engine("memory:", Settings(write_keys=write_keys, tokens=tokens), clock)
    assert "the-same-one" not in f"{refused.value} {refused.value.hint}"


def test_credentials_outlive_the_process(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "x.db")
    _, secret = engine.credentials.create("default", "write_key", "shop")
    engine.close()
    engine = open_engine(tmp_path / "x.db")
    try:
        assert engine.credentials.find(secret) is not None
    finally:
        engine.close()


def test_a_workspace_knows_all_its_sources(clock: Clock) -> None:
    engine = open_engine("memory:", Settings(write_keys="till=wk_from_the_settings"), clock)
    engine.credentials.create("default", "write_key", "shop")
    engine.credentials.create("other", "write_key", "elsewhere")
    assert engine.credentials.sources("default") == ["shop", "till"]
    assert engine.credentials.sources("other") == ["elsewhere"]


@pytest.mark.parametrize("setting", [{"tokens": "short"}, {"public_url": "ftp://shop.example"}])
def test_settings_that_are_refused_leave_no_store_behind(setting: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting):
        open_engine(tmp_path / "x.db", Settings(**setting))
    assert not list(tmp_path.iterdir())
