"""Passwords: hashed with scrypt, and how often somebody may fail to give the right one."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata

import msgspec

from threadline.kernel.errors import InvalidValue, TooManyRequests
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN, SIGN_IN_FAILURES_MAX
from threadline.kernel.store import Batch, Key, Put, Store
from threadline.kernel.time import MINUTE, Clock

SIGN_IN_FAILURES = "sign_in_failures"
FAILURES_WITHIN = 15 * MINUTE

_COST = 1 << 14
"""Of a new hash: with r 8 and p 5 it takes 16 MiB and about 0.2 s, one of OWASP's choices."""
_ROUNDS = 5
_MEMORY = 64 * 1_024 * 1_024
_BUCKET_DIGITS = 3
_BUCKET_ENTRIES_MAX = 400
_TRIES = 20


class Hasher:
    """Hashes passwords. Each hash says how it was made, so the cost may rise without a new password."""

    def __init__(self) -> None:
        self.cost = _COST
        self.rounds = _ROUNDS

    def hashed(self, password: str) -> str:
        """The hash of a new password, with a salt of its own. Raises `InvalidValue` for one that is too short."""
        text = _normal(password)
        if not PASSWORD_LENGTH_MIN <= len(text) <= PASSWORD_LENGTH_MAX:
            form = f"a password has {PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX} characters"
            raise InvalidValue(
                form, param="password", hint="Several words that do not belong together make a good one."
            )
        salt = secrets.token_bytes(16)
        digest = _scrypt(text, salt, self.cost, self.rounds)
        return f"scrypt.{self.cost}.{self.rounds}.{salt.hex()}.{digest.hex()}"

    def matches(self, password: str, hashed: str) -> bool:
        """Whether a hash is of this password; an empty one is of none, and takes as long to find out."""
        _, cost, rounds, salt, digest = (
            hashed.split(".") if hashed else ("", str(self.cost), str(self.rounds), "00" * 16, "")
        )
        made = _scrypt(_normal(password)[:PASSWORD_LENGTH_MAX], bytes.fromhex(salt), int(cost), int(rounds))
        return hmac.compare_digest(made.hex(), digest)


class Failures:
    """Counts failures to sign in, by name and address, in the store: all processes together, and across restarts.

    They share a fixed number of items, so that guessed names cannot fill the store, and an unknown name is counted
    like a known one.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def refuse(self, name: str) -> None:
        """Raise `TooManyRequests` for what has failed too often."""
        mark = _mark(name)
        now = self._clock()
        at = [at for failed_mark, at in self._read(_bucket(mark), now)[0] if failed_mark == mark]
        if len(at) >= SIGN_IN_FAILURES_MAX:
            minutes = -(-(at[-SIGN_IN_FAILURES_MAX] + FAILURES_WITHIN - now) // MINUTE)
            raise TooManyRequests(
                f"{SIGN_IN_FAILURES_MAX} failures to sign in with this name from here within 15 "
                f"minutes; try again in {max(minutes, 1)} min",
                hint="An admin can set a new password: `threadline accounts change NAME --password -`.",
            )

    def note(self, name: str) -> None:
        """Count a failure."""
        self._change(name, failed=True)

    def forget(self, name: str) -> None:
        """Begin again for what has signed in."""
        self._change(name, failed=False)

    def _change(self, name: str, *, failed: bool) -> None:
        mark = _mark(name)
        key = _bucket(mark)
        for _ in range(_TRIES):
            now = self._clock()
            entries, version = self._read(key, now)
            left = entries if failed else [entry for entry in entries if entry[0] != mark]
            if not failed and len(left) == len(entries):
                return
            if failed:
                left = [*entries, (mark, now)][-_BUCKET_ENTRIES_MAX:]
            put = Put(key, msgspec.json.encode(left), version)
            if self._store.commit([Batch(writes=[put])])[0] is None:
                return
        # Twenty lost races mean twenty others were counted meanwhile: enough of them to stop whoever guesses.

    def _read(self, key: Key, now: int) -> tuple[list[tuple[str, int]], int]:
        item = self._store.get([key])[0]
        if item is None:
            return [], 0
        entries = msgspec.json.decode(item.value, type=list[tuple[str, int]])
        # One that lies ahead was noted by a clock that has been set back, and would count for longer.
        return [entry for entry in entries if now - FAILURES_WITHIN < entry[1] <= now + MINUTE], item.version


def _mark(name: str) -> str:
    return short_hash("sign in", name)[:16]


def _bucket(mark: str) -> Key:
    return Key(SIGN_IN_FAILURES, mark[:_BUCKET_DIGITS])


def _normal(password: str) -> str:
    # Keyboards differ in how they write what looks the same.
    return unicodedata.normalize("NFKC", password)


def _scrypt(text: str, salt: bytes, cost: int, rounds: int) -> bytes:
    given = text.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(given, salt=salt, n=cost, r=8, p=rounds, maxmem=_MEMORY, dklen=32)
