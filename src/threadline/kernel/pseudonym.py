"""Pseudonyms: salted hashes of what is known no more, so that it can be recognised and never read.

The keys are the store's own. Whoever has the store and its keys can find out whether a value that they guess is among
the pseudonyms, and no more than that.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import msgspec

from threadline.kernel.store import Key, Store

PSEUDONYM_KEY = "pseudonym_key"
"""Table of one item: the keys of all workspaces, oldest first. There are several where two ledgers came together."""
KEYS_AT = Key(PSEUDONYM_KEY, "all")

_keys = msgspec.msgpack.Decoder(list[bytes])


def pseudonym_keys(store: Store) -> Sequence[bytes]:
    """The keys of a store; none before its first erasure."""
    item = store.get([KEYS_AT])[0]
    return () if item is None else _keys.decode(item.value)


def pseudonym(key: bytes, *parts: str) -> str:
    """The pseudonym of a value, 32 hex digits; ``parts`` say what it is and which."""
    return hmac.digest(key, "\0".join(parts).encode("utf-8", "surrogatepass"), "sha256").hex()[:32]
