"""Write keys and API tokens: made, looked up by their hash, listed and revoked."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from threadline.kernel.errors import Conflict, InvalidValue, NotFound, ThreadlineError, Unavailable
from threadline.kernel.event import WORKSPACE_FORM, is_workspace
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.kernel.time import HOUR, SECOND, Clock, believed_until
from threadline.kernel.typed import prepared

CREDENTIAL = "credential"
CREDENTIAL_LIST = "credential_list"
CREDENTIAL_USED = "credential_used"
"""Table: when each credential of a workspace was last used."""
USED_TO = HOUR
"""How exact that is: a use is written down once in so long, so that reading stays reading."""

Kind = Literal["write_key", "token"]
SCOPES = ("read", "write", "admin", "personal")
"""`personal` shows agents personal data unmasked; it opens nothing by itself."""
CREDENTIALS_MAX = 1_000
"""Credentials of one workspace."""
NAME_LENGTH_MAX = 100
CACHE_SECONDS = 5.0
"""Lifetime of a cached look-up where the settings give no other."""

_PREFIX = {"write_key": "wk_", "token": "tl_"}
_CACHED_MAX = 10_000
_ALL_WORKSPACES = "all"


@prepared
class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """What a secret opens. The secret itself is never kept, only its hash."""

    id: str
    kind: Kind
    name: str
    """Of a write key: the source of its events. Of a token: its holder."""
    workspace: str
    scopes: tuple[str, ...] = ()
    """Of a token: any of `SCOPES`. A write key has none: it opens the ingest addresses only."""
    created_at: int = 0
    hash: str = ""
    expires_at: int = 0
    """From when it opens nothing; 0: it does not expire."""

    def allows(self, scope: str) -> bool:
        """Whether a token may do what needs this scope; admin includes the others."""
        return scope in self.scopes or "admin" in self.scopes

    @property
    def records(self) -> bool:
        """Whether it may send events to the ingest addresses."""
        return self.kind == "write_key" or self.allows("write")


class Found(NamedTuple):
    """The result of looking a secret up: its credential, or None."""

    credential: Credential | None


class Credentials:
    """The credentials of one store, with a small cache of short life. Thread-safe."""

    def __init__(
        self, store: Store, clock: Clock, fixed: Iterable[Credential] = (), *, cache_seconds: float = CACHE_SECONDS
    ) -> None:
        self.store = store
        self.clock = clock
        self.cache_seconds = cache_seconds
        """Lifetime of a cached look-up, and so how long a key works that another process has revoked."""
        self._cache: dict[str, tuple[Found, int]] = {}
        """Digest -> the look-up and when it expires."""
        self._caching = threading.Lock()
        """For changes of the cache; reading it needs no lock."""
        self._changes = 0
        """Credentials that this process has made and revoked."""
        self._noted: dict[str, int] = {}
        """Id -> the hour of the last use that this process has written down."""
        self._fixed = {credential.hash: credential for credential in fixed}

    def is_fixed(self, credential: Credential) -> bool:
        """Whether it comes from the settings."""
        return credential.hash in self._fixed

    def find(self, secret: str) -> Credential | None:
        """What this secret opens, or None. A look-up by hash leaks nothing through the time it takes."""
        return self.find_hashed(hash_secret(secret))

    def find_hashed(self, digest: str) -> Credential | None:
        """The same for the hash of a secret, which is what a session remembers of a token."""
        cached = self._recall(digest)
        if cached is None:
            until = self.clock() + round(self.cache_seconds * SECOND)
            changes = self._changes
            item = self.store.get([Key(CREDENTIAL, digest)])[0]
            cached = Found(None if item is None else msgspec.json.decode(item.value, type=Credential))
            self._remember(digest, cached, until, changes)
            if cached.credential is not None:
                self._note_use(cached.credential)
        return self._still_good(cached)

    def recall(self, secret: str) -> Found | None:
        """The cached look-up of a secret; None if there is none. It does not read the store."""
        cached = self._recall(hash_secret(secret))
        return None if cached is None else Found(self._still_good(cached))

    def used(self, workspace: str) -> dict[str, int]:
        """When each credential was last used, by id, to the hour; those that never were are left out."""
        items = self.store.query(CREDENTIAL_USED, workspace, limit=CREDENTIALS_MAX)
        return {item.key.sort: msgspec.json.decode(item.value, type=int) for item in items}

    def _still_good(self, cached: Found) -> Credential | None:
        credential = cached.credential
        is_over = credential is not None and 0 < credential.expires_at <= self.clock()
        return None if is_over else credential

    def _note_use(self, credential: Credential) -> None:
        """Write down that it was used in this hour. What it opens does not wait for a store that cannot be written."""
        hour = self.clock() // USED_TO
        if credential.hash in self._fixed or self._noted.get(credential.id) == hour:
            return
        self._noted[credential.id] = hour
        put = Put(Key(CREDENTIAL_USED, credential.workspace, credential.id), msgspec.json.encode(hour * USED_TO))
        with suppress(ThreadlineError):
            self.store.commit([Batch(writes=[put])])

    def _recall(self, digest: str) -> Found | None:
        if digest in self._fixed:
            return Found(self._fixed[digest])
        cached = self._cache.get(digest)
        if cached is None:
            return None
        # Without the bound a clock that is set back would let a key that was revoked elsewhere work until that day.
        now = self.clock()
        return cached[0] if now < believed_until(cached[1], now, round(self.cache_seconds * SECOND)) else None

    def _remember(self, digest: str, cached: Found, until: int, changes: int) -> None:
        with self._caching:
            if changes != self._changes:
                return  # a change came after the read, which may be outdated
            if len(self._cache) >= _CACHED_MAX:  # guesses are cached as well, so the cache must be bounded
                self._cache.clear()
            self._cache[digest] = (cached, until)

    def _forget(self, digest: str) -> None:
        with self._caching:
            self._changes += 1
            self._cache.pop(digest, None)

    def create(
        self,
        workspace: str,
        kind: Kind,
        name: str,
        scopes: Iterable[str] = (),
        *,
        secret: str = "",
        expires_at: int = 0,
    ) -> tuple[Credential, str]:
        """A new credential and its secret, which is returned this once. A ``secret`` of one's own may be given.
        From ``expires_at`` on it opens nothing; 0: it does not expire.

        Raises `InvalidValue` for a name, workspace or scope that cannot be, `Conflict` for a secret that is taken.
        """
        chosen = _scopes(kind, scopes)
        if not 1 <= len(name) <= NAME_LENGTH_MAX or not name.isprintable():
            raise InvalidValue(
                f"the name of a credential has 1 to {NAME_LENGTH_MAX} printable characters", param="name"
            )
        if not is_workspace(workspace):
            raise InvalidValue(f"{workspace[:80]!r} cannot name a workspace: {WORKSPACE_FORM}")
        if len(self.entries(workspace)) >= CREDENTIALS_MAX:
            raise InvalidValue(f"workspace {workspace!r} has {CREDENTIALS_MAX} credentials; revoke some first")
        secret = secret or _PREFIX[kind] + secrets.token_urlsafe(24)
        digest = hash_secret(secret)
        credential = Credential(
            id=digest[:12],
            kind=kind,
            name=name,
            workspace=workspace,
            scopes=chosen,
            created_at=self.clock(),
            hash=digest,
            expires_at=expires_at,
        )
        value = msgspec.json.encode(credential)
        writes = [Put(Key(CREDENTIAL, digest), value, 0), Put(Key(CREDENTIAL_LIST, workspace, credential.id), value, 0)]
        if self.store.commit([Batch(writes=[*writes, _mention(workspace)])])[0] is not None:
            raise Conflict("a credential with this secret exists already")
        self._forget(digest)
        return credential, secret

    def entries(self, workspace: str) -> list[Credential]:
        """The credentials of a workspace, oldest first. Those from the settings are not among them."""
        items = self.store.query(CREDENTIAL_LIST, workspace, limit=CREDENTIALS_MAX)
        credentials = [msgspec.json.decode(item.value, type=Credential) for item in items]
        return sorted(credentials, key=lambda c: (c.created_at, c.id))

    def sources(self, workspace: str) -> list[str]:
        """The names under which this workspace's credentials record events, those of the settings included."""
        fixed = [credential for credential in self._fixed.values() if credential.workspace == workspace]
        return sorted({entry.name for entry in [*self.entries(workspace), *fixed]})

    def has_any(self) -> bool:
        """Whether any workspace was ever given a credential, those of the settings included."""
        return bool(self._fixed) or bool(self.store.query(CREDENTIAL, _ALL_WORKSPACES, limit=1))

    def revoke(self, workspace: str, id: str) -> Credential:
        """Revoke a credential, at once in this process; raises `NotFound`."""
        item = self.store.get([Key(CREDENTIAL_LIST, workspace, id)])[0] if id else None
        if item is None:
            raise NotFound(f"workspace {workspace!r} has no credential {id!r}")
        credential = msgspec.json.decode(item.value, type=Credential)
        used = Delete(Key(CREDENTIAL_USED, workspace, id))
        deletes = [Delete(Key(CREDENTIAL, credential.hash)), Delete(item.key, item.version), used]
        try:
            if self.store.commit([Batch(writes=deletes)])[0] is not None:
                raise Unavailable("another process is changing this credential; try again")
        finally:
            self._forget(credential.hash)  # even if the commit failed: it may have gone through
        return credential


def hash_secret(secret: str) -> str:
    """SHA-256 of a secret, hex. Secrets are long and random, so that no slow hash is needed to keep them."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def fresh_key() -> str:
    """An idempotency key for an event whose producer gave it none."""
    return secrets.token_hex(16)


def fixed_credentials(
    write_keys: Iterable[tuple[str, str]], tokens: Iterable[tuple[str, str]], workspace: str
) -> list[Credential]:
    """Those of (name, secret) pairs of the settings. They are never stored."""
    made = [_fixed("write_key", name, secret, workspace, ()) for name, secret in write_keys]
    return made + [_fixed("token", name, secret, workspace, ("admin",)) for name, secret in tokens]


def _fixed(kind: Kind, name: str, secret: str, workspace: str, scopes: tuple[str, ...]) -> Credential:
    digest = hash_secret(secret)
    return Credential(id=digest[:12], kind=kind, name=name, workspace=workspace, scopes=scopes, hash=digest)


def _scopes(kind: Kind, scopes: Iterable[str]) -> tuple[str, ...]:
    chosen = set(scopes)
    if chosen - set(SCOPES):
        raise InvalidValue(f"{sorted(chosen - set(SCOPES))[0]!r} is not a scope; choose from {', '.join(SCOPES)}")
    if kind == "write_key" and chosen:
        raise InvalidValue("a write key has no scopes: it may only record; create a token instead", param="scopes")
    if kind == "token" and not chosen:
        raise InvalidValue(f"a token needs at least one scope of {', '.join(SCOPES)}", param="scopes")
    return tuple(scope for scope in SCOPES if scope in chosen)


def _mention(workspace: str) -> Put:
    return Put(Key(CREDENTIAL, _ALL_WORKSPACES, workspace), b"-")
