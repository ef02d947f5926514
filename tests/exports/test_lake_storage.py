"""Object storage: one contract for a folder and for S3 (MiniStack, an emulator), and what is said when it refuses."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.exports.lake_stage import assert_is_log
from tests.laws import staging
from tests.servers.dynamodb import Server
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.s3 import BucketStorage
from threadline.exports.lake.storage import Storage, open_storage
from threadline.exports.lake.sync import sync
from threadline.exports.lake.verification import verify
from threadline.kernel.errors import (
    Forbidden,
    InvalidSetting,
    NotFound,
    StoreFull,
    ThreadlineError,
    Unavailable,
)
from threadline.stores.memory import MemoryStore


def bucket(name: str, server: Server, *, made: bool = True) -> BucketStorage:
    """A bucket of this name, below a prefix."""
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    if made:
        client.create_bucket(Bucket=name)
    return BucketStorage(client, name, "a lake/ä")


@pytest.fixture(scope="module")
def server() -> Server:
    from tests.servers.s3 import s3

    return s3()


@pytest.fixture(params=["folder", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return FolderStorage(tmp_path / "a lake")
    return bucket(f"b{abs(hash(str(tmp_path)))}", request.getfixturevalue("server"))


def test_what_is_written_is_read_listed_and_removed(storage: Storage) -> None:
    assert (storage.tagged("a/b"), list(storage.list())) == (None, [])
    with pytest.raises(NotFound):
        storage.read("a/b")
    storage.write("a/b", b"1")
    storage.write("a/b", b"22")
    storage.write("a/c=ä ~'%41", b"")
    storage.write("ab", b"3")
    assert (storage.read("a/b"), storage.read("a/c=ä ~'%41")) == (b"22", b"")
    assert [(each.name, each.bytes) for each in storage.list("a/")] == [("a/b", 2), ("a/c=ä ~'%41", 0)]
    assert [each.name for each in storage.list()] == ["a/b", "a/c=ä ~'%41", "ab"]
    storage.delete(["a/b", "not there"])
    assert [each.name for each in storage.list()] == ["a/c=ä ~'%41", "ab"]


def test_replace_asks_for_the_tag_of_what_is_there(storage: Storage) -> None:
    assert storage.replace("x", b"1", "wrong") is None
    first = storage.replace("x", b"1", "")
    assert first
    assert storage.replace("x", b"2", "") is None
    second = storage.replace("x", b"2", first)
    assert storage.tagged("x") == (b"2", second)
    assert storage.replace("x", b"3", first) is None
    assert storage.read("x") == b"2"


def test_of_many_replacements_at_once_one_gets_through(storage: Storage) -> None:
    tag, together, done = storage.replace("x", b"0", ""), threading.Barrier(6), []
    assert tag

    def replace(number: int) -> None:
        together.wait()
        done.append(storage.replace("x", b"%d" % number, tag) is not None)

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.count(True) == 1


def test_a_lake_in_either_is_the_log(storage: Storage) -> None:
    on, lake = staging.engine(MemoryStore()), Lake(storage)
    for number in range(6):
        on.recorder.record([staging.event("page", {"user_id": f"u{number % 2}"}, str(number))])
    sync(on, lake, range_events=2)
    on.erasures.run("default", on.erasures.begin("default", "user_id:u1").id)
    assert sync(on, lake).erased == 3
    assert_is_log(lake, on.store)
    assert verify(on, lake).problems == []


def test_a_missing_bucket_is_named_and_nothing_is_lost(server: Server) -> None:
    on = staging.engine(MemoryStore())
    on.recorder.record([staging.event("page", {"user_id": "a"}, "1")])
    missing = bucket("no-such-bucket", server, made=False)
    with pytest.raises(InvalidSetting, match="no bucket 'no-such-bucket'"):
        sync(on, Lake(missing))
    there = bucket("no-such-bucket", server)
    sync(on, Lake(there))
    assert_is_log(Lake(there), on.store)


class Refusing:
    """A client whose every call is refused with one code, as botocore raises it."""

    def __init__(self, code: str, status: int) -> None:
        from botocore.exceptions import ClientError

        class Exceptions:
            pass

        self.exceptions: Any = Exceptions()
        self.exceptions.ClientError = ClientError
        self._answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            raise self.exceptions.ClientError(self._answer, name)

        return call


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("AccessDenied", 403, Forbidden),
        ("InvalidAccessKeyId", 403, InvalidSetting),
        ("SignatureDoesNotMatch", 403, InvalidSetting),
        ("ExpiredToken", 400, InvalidSetting),
        ("QuotaExceeded", 403, StoreFull),
        ("SlowDown", 503, Unavailable),
        ("NoSuchBucket", 404, InvalidSetting),
    ],
)
def test_what_s3_refuses_is_said_with_the_permission(code: str, status: int, error: type[ThreadlineError]) -> None:
    pytest.importorskip("botocore")
    refusing: Any = Refusing(code, status)
    storage = BucketStorage(refusing, "b", "p")
    calls = {
        "s3:GetObject": lambda: storage.read("x"),
        "s3:PutObject": lambda: storage.write("x", b""),
        "s3:ListBucket": lambda: list(storage.list()),
        "s3:DeleteObject": lambda: storage.delete(["x"]),
    }
    calls["s3:PutObject "] = lambda: storage.replace("x", b"", "tag")
    for permission, call in calls.items():
        if code == "NoSuchBucket" and permission == "s3:ListBucket":
            continue  # a paginator, below
        with pytest.raises(ThreadlineError) as raised:
            call()
        assert type(raised.value) is error
        if error is Forbidden:
            assert permission.strip() in str(raised.value)
            assert permission.strip() in raised.value.hint
        if code != "NoSuchBucket":
            assert "s3://b/p" in str(raised.value)


def test_a_lost_answer_to_a_commit_is_no_conflict(tmp_path: Path) -> None:
    class Lossy(FolderStorage):
        def replace(self, name: str, content: bytes, expected_tag: str) -> str | None:
            super().replace(name, content, expected_tag)
            return super().replace(name, content, expected_tag)  # as a client that sends its write again

    on = staging.engine(MemoryStore())
    on.recorder.record([staging.event("page", {"user_id": "a"}, "1")])
    lake = Lake(Lossy(tmp_path))
    assert sync(on, lake).events == 1
    assert_is_log(lake, on.store)


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EACCES, Forbidden)]
)
def test_a_folder_that_takes_nothing_is_named_and_the_next_sync_goes_on(
    number: int, error: type[ThreadlineError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on, lake = staging.engine(MemoryStore()), Lake(FolderStorage(tmp_path))
    on.recorder.record([staging.event("page", {"user_id": "a"}, "1")])

    def failing(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(error, match=str(tmp_path)) as raised:
            sync(on, lake)
    assert raised.value.hint
    assert list(lake.storage.list()) == []
    sync(on, lake)
    assert_is_log(lake, on.store)


@pytest.mark.parametrize("url", ["", "http://x/y", "s3://", "gs://bucket/x", "file://host/x"])
def test_a_url_of_no_storage_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting):
        open_storage(url)


def test_paths_and_file_urls_are_folders(tmp_path: Path) -> None:
    for url in (str(tmp_path), f"file://{tmp_path}", f"{tmp_path}/"):
        assert open_storage(url).url("a/b") == str(tmp_path / "a/b")
