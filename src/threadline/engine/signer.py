"""Signed tokens for links that anybody may hold: opaque, for one purpose, valid for as long as the store has their key.

A token is the number of its key, a tag and the payload, enciphered (a synthetic initialisation vector: the tag is the
HMAC of the payload, and the key stream the HMAC of the tag). So an address in a link can't be read out of a server's
log, and the token of one payload is always the same, which lets a mail be rendered twice with equal bytes.
"""

from __future__ import annotations

import binascii
import hmac
import re
import secrets
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from threadline.engine.folding.packing import pack
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.store import Batch, Key, Put, Store
from threadline.kernel.web import Signed

SIGNING_KEY = "signing_key"
"""Table of one item: the keys of all workspaces, oldest first. A move and a backup copy it like any other."""
KEYS_MAX = 256
TOKEN_LENGTH_MAX = 4_096

_KEYS = Key(SIGNING_KEY, "all")
_TAG_BYTES = 16
_BLOCK_BYTES = 32
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{23,{TOKEN_LENGTH_MAX}}}")
_secrets = msgspec.msgpack.Decoder(list[bytes])
_payload = msgspec.msgpack.Decoder(Signed)


class _SigningKey(NamedTuple):
    number: int
    tag: bytes
    stream: bytes

    def token(self, purpose: str, payload: bytes) -> bytes:
        tag = self._tag(purpose, payload)
        return bytes((self.number,)) + tag + self._enciphered(tag, payload)

    def payload(self, purpose: str, token: bytes) -> bytes | None:
        tag, rest = token[1 : 1 + _TAG_BYTES], token[1 + _TAG_BYTES :]
        payload = self._enciphered(tag, rest)
        return payload if hmac.compare_digest(tag, self._tag(purpose, payload)) else None

    def _tag(self, purpose: str, payload: bytes) -> bytes:
        return hmac.digest(self.tag, purpose.encode() + b"\0" + payload, "sha256")[:_TAG_BYTES]

    def _enciphered(self, tag: bytes, text: bytes) -> bytes:
        blocks = range((len(text) + _BLOCK_BYTES - 1) // _BLOCK_BYTES)
        stream = b"".join(hmac.digest(self.stream, tag + block.to_bytes(2, "big"), "sha256") for block in blocks)
        # One operation on large numbers: byte by byte it takes five times as long, three times for each mail.
        mixed = int.from_bytes(text, "big") ^ int.from_bytes(stream[: len(text)], "big")
        return mixed.to_bytes(len(text), "big")


class Signer:
    """The signer of one store. Its first key is made when something is first signed. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: tuple[_SigningKey, ...] = ()
        self._making = threading.Lock()

    def sign(self, purpose: str, workspace: str, *values: str | int) -> str:
        """A token of 32 characters and more, for URLs; `read` with the same purpose gives the rest back."""
        if not purpose or "\0" in purpose:
            raise InvalidValue("a token is signed for a purpose that has a name")
        if not self._keys and not self._read_keys():
            self._add_key(())
        token = self._keys[-1].token(purpose, pack(Signed(workspace, tuple(values))))
        encoded = urlsafe_b64encode(token).rstrip(b"=").decode()
        if len(encoded) > TOKEN_LENGTH_MAX:
            raise InvalidValue(f"a token has at most {TOKEN_LENGTH_MAX:,} characters; sign less")
        return encoded

    def read(self, purpose: str, token: str) -> Signed | None:
        """What was signed for this purpose; None for whatever this store has not signed."""
        if not _TOKEN.fullmatch(token):
            return None
        try:
            decoded = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except binascii.Error:
            return None
        if urlsafe_b64encode(decoded).rstrip(b"=").decode() != token:
            return None  # one payload has one token: the last character has bits to spare
        number = decoded[0]
        if number >= len(self._keys) and number >= len(self._read_keys()):
            return None
        payload = self._keys[number].payload(purpose, decoded)
        return None if payload is None else _payload.decode(payload)

    def rotate(self) -> int:
        """Sign with a new key from now on; tokens of earlier keys stay valid. Answers how many keys there are.

        Other processes go on with the key that they know until they start again.
        """
        if not self._add_key(self._read_keys()):
            raise Conflict("another process is rotating the keys; look again")
        return len(self._keys)

    def _read_keys(self) -> Sequence[_SigningKey]:
        item = self._store.get([_KEYS])[0]
        if item is not None:
            self._keys = tuple(map(_derived, *zip(*enumerate(_secrets.decode(item.value)), strict=True)))
        return self._keys

    def _add_key(self, known: Sequence[_SigningKey]) -> bool:
        with self._making:
            item = self._store.get([_KEYS])[0]
            made = [] if item is None else _secrets.decode(item.value)
            added = len(made) == len(known)
            if added:
                if len(made) == KEYS_MAX:
                    raise Conflict(f"a store has at most {KEYS_MAX} signing keys")
                put = Put(_KEYS, pack([*made, secrets.token_bytes(32)]), 0 if item is None else item.version)
                added = self._store.commit([Batch(writes=[put])])[0] is None
            self._read_keys()
            return added


def _derived(number: int, secret: bytes) -> _SigningKey:
    return _SigningKey(number, hmac.digest(secret, b"tag", "sha256"), hmac.digest(secret, b"stream", "sha256"))
