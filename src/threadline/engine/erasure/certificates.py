"""The ledger of a workspace: certificates that each name the hash of the one before, so that none can be left out."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from threadline.engine.folding.packing import pack
from threadline.kernel.canonical import canonical_json
from threadline.kernel.erasure import ERASURE, LEDGER_HEAD, Certificate
from threadline.kernel.pseudonym import KEYS_AT, pseudonym, pseudonym_keys
from threadline.kernel.store import Batch, Key, Put, Store, scan_pages

_ATTEMPTS_MAX = 32


class Head(NamedTuple):
    """The end of a workspace's ledger."""

    sequence: int
    hash: str
    version: int
    """Of its item."""


def head_of(store: Store, workspace: str) -> Head:
    """The end of a workspace's ledger."""
    item = store.get([_head_key(workspace)])[0]
    if item is None:
        return Head(0, "", 0)
    sequence, hash = msgspec.json.decode(item.value, type=tuple[int, str])
    return Head(sequence, hash, item.version)


def _head_key(workspace: str) -> Key:
    return Key(LEDGER_HEAD, workspace)


def hash_of(content: bytes) -> str:
    """What the next certificate says of this one."""
    return hashlib.sha256(content).hexdigest()


def signed(certificate: Certificate, key: bytes) -> bytes:
    """The bytes of a certificate, in canonical JSON, with its signature."""
    plain = canonical_json(asdict(replace(certificate, signature="")))
    return canonical_json(asdict(replace(certificate, signature=hmac.digest(key, plain, "sha256").hex())))


def ledger_writes(certificate: Certificate, content: bytes, head: Head) -> list[Put]:
    """The writes that add a certificate at the end of its ledger."""
    end = msgspec.json.encode((certificate.sequence, hash_of(content)))
    return [
        Put(Key(ERASURE, certificate.workspace, certificate.erasure), content, 0),
        Put(_head_key(certificate.workspace), end, head.version),
    ]


def taken_over(store: Store, content: bytes) -> list[Put]:
    """The writes that take over a certificate of another copy of this store."""
    certificate = read(content)
    head = head_of(store, certificate.workspace)
    writes = [Put(Key(ERASURE, certificate.workspace, certificate.erasure), content)]
    if certificate.sequence > head.sequence:
        end = msgspec.json.encode((certificate.sequence, hash_of(content)))
        writes.append(Put(_head_key(certificate.workspace), end, head.version))
    return writes


def read(content: bytes) -> Certificate:
    """The certificate of its bytes."""
    return msgspec.json.decode(content, type=Certificate)


def certificates(store: Store) -> Iterator[bytes]:
    """Every certificate of every workspace, each ledger in its order."""
    contents = [item.value for item in scan_pages(store, ERASURE)]
    yield from sorted(
        contents,
        key=lambda content: ((certificate := read(content)).workspace, certificate.sequence, certificate.erasure),
    )


def own_key(store: Store) -> bytes:
    """The key of new pseudonyms; it is made when it is first needed."""
    for _ in range(_ATTEMPTS_MAX):
        if keys := pseudonym_keys(store):
            return keys[-1]
        store.commit([Batch(writes=[Put(KEYS_AT, pack([secrets.token_bytes(32)]), 0)])])
    raise AssertionError("an item is absent and cannot be created")


def add_keys(store: Store, keys: Sequence[bytes]) -> None:
    """Let pseudonyms of another copy of this store be recognised; new ones go on having the key that they have."""
    for _ in range(_ATTEMPTS_MAX):
        item = store.get([KEYS_AT])[0]
        known = pseudonym_keys(store)
        missing = [key for key in keys if key not in known]
        version = 0 if item is None else item.version
        put = Put(KEYS_AT, pack([*missing, *known]), version)
        if not missing or store.commit([Batch(writes=[put])])[0] is None:
            return
    raise AssertionError("others keep changing the keys")


def thread_pseudonym(key: bytes, thread: str) -> str:
    """What a certificate says of a thread."""
    return pseudonym(key, "thread", thread)
