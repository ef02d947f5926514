"""Accounts of people who use the console, and sessions: who is signed in, as what, and until when."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from threadline.engine.credentials import Credential, Credentials, hash_secret
from threadline.engine.one_time_codes import SecondFactor
from threadline.engine.passwords import Failures, Hasher
from threadline.engine.signer import Signer
from threadline.kernel.errors import (
    Conflict,
    Forbidden,
    InvalidValue,
    LimitExceeded,
    NotFound,
    Unauthorized,
    Unavailable,
)
from threadline.kernel.event import WORKSPACE_FORM, is_workspace
from threadline.kernel.limits import ACCOUNT_NAME_LENGTH_MAX, ACCOUNTS_MAX, SESSIONS_MAX
from threadline.kernel.roles import ROLES, Role, role_of_scopes
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.kernel.time import (
    HOUR,
    MINUTE,
    SECOND,
    TIME_KEY_LENGTH,
    Clock,
    believed_until,
    is_over,
    time_key,
    time_of_key,
)
from threadline.kernel.typed import prepared

ACCOUNT = "account"
"""Table: accounts by name. A name is unique in the store, because who signs in gives no workspace."""
ACCOUNT_LIST = "account_list"
"""Table: the names of a workspace's accounts."""
SESSION = "session"
"""Table: sessions by the hash of their secret."""
SESSION_LIST = "session_list"
"""Table: sessions by whose they are and when they end."""

SESSION_LENGTH = 12 * HOUR
SECOND_STEP_LENGTH = 10 * MINUTE
"""How long after the password a code is taken, and an app may be set up."""
_TICKET = "second step"
Step = Literal["code", "no app yet", "app at sign-in", "app"]
_CACHED_MAX = 10_000


@prepared
class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may sign in."""

    name: str
    workspace: str
    role: Role
    created_at: int
    password: str
    """The hash; see `threadline.engine.passwords`."""
    stamp: str
    """Changes with the password, and differs in an account that is made anew: the sessions of the former end."""
    second_factor: SecondFactor | None = None
    provider_id: str = ""
    """Issuer and subject of who signs in through an identity provider; such an account has no password."""
    reset_hash: str = ""
    """The hash of the last link to set a password."""
    reset_until: int = 0

    @property
    def has_second_factor(self) -> bool:
        """Whether signing in takes a code."""
        return self.second_factor is not None

    @property
    def by_provider(self) -> bool:
        """Whether an identity provider says who it is, and which role they have."""
        return bool(self.provider_id)


@prepared
class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is signed in."""

    id: str
    workspace: str
    name: str
    """Of the account, or of the token."""
    role: Role
    csrf: str
    """What a form of this session has to send along."""
    expires_at: int
    token_scopes: tuple[str, ...] = ()
    """Of the token that was signed in with; empty for an account."""


@prepared
class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the store has it, without anything that opens it."""

    expires_at: int
    account: str = ""
    """The key of the account, with its stamp; or"""
    stamp: str = ""
    token: str = ""
    """the hash of the token."""


class Pending(NamedTuple):
    """A sign-in whose password was right, and that needs a code."""

    ticket: str
    must_enrol: bool = False
    """Whether the account must have a second factor and has none yet."""


class Opened(NamedTuple):
    """A session that has begun."""

    session: Session
    secret: str


class Accounts:
    """The accounts and sessions of one store. Thread-safe. Only hashes of passwords and secrets are stored."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        credentials: Credentials,
        signer: Signer,
        second_factor_roles: Collection[Role] = (),
    ) -> None:
        self.signer = signer
        self.second_factor_roles = second_factor_roles
        """Roles whose accounts do not sign in without a second factor."""
        self.store = store
        self.clock = clock
        self.credentials = credentials
        self.hasher = Hasher()
        self.failures = Failures(store, clock)
        self.cache_seconds = 5.0
        """How long a session may go on in this process after another one has ended it."""
        self._cache: dict[str, tuple[Session, int]] = {}
        self._caching = threading.Lock()
        self._changes = 0

    def create(self, workspace: str, name: str, password: str, role: Role) -> Account:
        """A new account. Raises `InvalidValue` for what cannot be, `Conflict` for a name that is taken."""
        return self.add(workspace, name, role, self.hasher.hashed(password))

    def add(self, workspace: str, name: str, role: Role, password: str, provider_id: str = "") -> Account:
        """A new account with the hash of its password, or with who it is at an identity provider."""
        _check_name(name)
        _check_role(role)
        if not is_workspace(workspace):
            raise InvalidValue(f"{workspace[:80]!r} cannot name a workspace: {WORKSPACE_FORM}")
        if len(self.store.query(ACCOUNT_LIST, workspace, limit=ACCOUNTS_MAX)) >= ACCOUNTS_MAX:
            raise LimitExceeded(f"workspace {workspace!r} has {ACCOUNTS_MAX} accounts; remove some first")
        account = Account(
            name=name,
            workspace=workspace,
            role=role,
            created_at=self.clock(),
            password=password,
            stamp=secrets.token_hex(8),
            provider_id=provider_id,
        )
        listed = Put(Key(ACCOUNT_LIST, workspace, key_of(name)), b"-")
        if self.store.commit([Batch(writes=[_put(account, 0), listed])])[0] is not None:
            raise Conflict(f"an account named {name!r} exists already", param="name")
        return account

    def entries(self, workspace: str) -> list[Account]:
        """The accounts of a workspace, by name."""
        rows = self.store.query(ACCOUNT_LIST, workspace, limit=ACCOUNTS_MAX)
        items = self.store.get([Key(ACCOUNT, item.key.sort) for item in rows])
        return [msgspec.json.decode(item.value, type=Account) for item in items if item is not None]

    def remove(self, workspace: str, name: str) -> Account:
        """Remove an account and end its sessions; raises `NotFound`."""
        account, version = self._account(workspace, name)
        deletes = [Delete(Key(ACCOUNT, key_of(name)), version), Delete(Key(ACCOUNT_LIST, workspace, key_of(name)))]
        self._commit(deletes)
        return account

    def set_role(self, workspace: str, name: str, role: Role) -> Account:
        """Give an account another role, also in the sessions that it has; raises `NotFound`."""
        _check_role(role)
        return self.change(workspace, name, role=role)

    def set_password(self, workspace: str, name: str, password: str) -> Account:
        """Give an account another password, and end its sessions; raises `NotFound`, and `Conflict` for who signs in
        through a provider."""
        account, _ = self._account(workspace, name)
        if account.by_provider:
            raise Conflict(f"{account.name!r} signs in through an identity provider, and has no password here")
        hashed, stamp = self.hasher.hashed(password), secrets.token_hex(8)
        return self.change(workspace, name, password=hashed, stamp=stamp, reset_hash="", reset_until=0)

    def change_if_same(self, account: Account, **changes: Any) -> bool:
        """Change fields of an account that nobody has changed since it was read; whether that was so."""
        current, version = self._account(account.workspace, account.name)
        return current == account and self._try([_put(msgspec.structs.replace(account, **changes), version)])

    def account(self, workspace: str, name: str) -> Account:
        """An account of a workspace; raises `NotFound`."""
        return self._account(workspace, name)[0]

    def change(self, workspace: str, name: str, **changes: Any) -> Account:
        """Change fields of an account; raises `NotFound`."""
        account, version = self._account(workspace, name)
        changed = msgspec.structs.replace(account, **changes)
        self._commit([_put(changed, version)])
        return changed

    def named(self, name: str) -> Account | None:
        """The account of a name, in whichever workspace; None where there is none."""
        item = self.store.get([Key(ACCOUNT, key_of(name))])[0] if _is_name(name) else None
        return None if item is None else msgspec.json.decode(item.value, type=Account)

    def sign_in(self, name: str, password: str, address: str = "") -> Opened | Pending:
        """A new session of an account, or what has to follow the password. Raises `Unauthorized`, and `TooManyRequests`
        after failures with this name from this address: whoever fails elsewhere keeps nobody out.

        Whether there is an account of this name shows neither in the answer nor in the time that it takes.
        """
        account = self._by_password(name, password, address)
        if account.second_factor is not None:
            return Pending(self.ticket("code", account))
        if self._lacks_second_factor(account):
            return Pending(self.ticket("no app yet", account), must_enrol=True)
        return self.begin(account)

    def _by_password(self, name: str, password: str, address: str) -> Account:
        """The account of a name, if this is its password."""
        account = self.named(name)
        key = key_of(name[: ACCOUNT_NAME_LENGTH_MAX + 1])
        # With another password begins another count.
        failing = f"{key}\n{'' if account is None else account.stamp}\n{address}"
        self.failures.refuse(failing)
        if not self.hasher.matches(password, "" if account is None else account.password) or account is None:
            self.failures.note(failing)
            raise Unauthorized("the name or the password is wrong")
        self.failures.forget(failing)
        return account

    def sign_in_with_token(self, secret: str) -> Opened:
        """A new session of whoever has an API token, and its secret. Raises `Unauthorized`."""
        token = self.credentials.find(secret)
        if token is None or token.kind != "token":
            raise Unauthorized(
                "this is not a token", hint="`threadline keys create --kind token --name NAME --scopes read` makes one."
            )
        return self._begin(_Stored(expires_at=self._end(), token=token.hash))

    def own(self, session: Session) -> Account:
        """The account of who is signed in. Raises `Forbidden` where it has no password of its own."""
        account = None if session.token_scopes else self.named(session.name)
        if account is None or account.by_provider:
            raise Forbidden("only an account with a password of its own has this")
        return account

    def checked_own(self, session: Session, password: str, address: str) -> Account:
        """The same for who gives its password once more; raises what `sign_in` does."""
        return self._by_password(self.own(session).name, password, address)

    # --- steps between a password and a session -----------------------------------------------------

    def name_of(self, ticket: str) -> str:
        """The name of the account of a ticket, good or not; "" where it is none of ours."""
        signed = self.signer.read(_TICKET, ticket)
        return "" if signed is None else str(signed.values[1])

    def ticket(self, step: Step, account: Account, sealed: str = "") -> str:
        """What a browser brings back with the next step of signing in; ``sealed`` is a secret on its way."""
        until = self.clock() + SECOND_STEP_LENGTH
        values = (step, key_of(account.name), account.stamp, until, sealed)
        return self.signer.sign(_TICKET, account.workspace, *values)

    def of_ticket(self, step: str, ticket: str) -> tuple[Account, str]:
        """The account of a ticket for a step, and the secret that is in it. Raises `Unauthorized`."""
        signed = self.signer.read(_TICKET, ticket)
        if signed is not None and signed.values[0] == step:
            _, name, stamp, until, sealed = signed.values
            account = self.named(str(name))
            ended = is_over(int(until), self.clock(), SECOND_STEP_LENGTH)
            if account is not None and account.stamp == stamp and not ended:
                return account, str(sealed)
        raise Unauthorized("it took too long, or the password has changed meanwhile; sign in again")

    # --- sessions -----------------------------------------------------------------------------------

    def find(self, secret: str) -> Session | None:
        """The session of this secret; None where there is none, where it has ended or its account or token has gone."""
        digest = hash_secret(secret)
        now = self.clock()
        cached = self._cache.get(digest)
        if cached is not None and now < believed_until(cached[1], now, round(self.cache_seconds * SECOND)):
            return None if is_over(cached[0].expires_at, now, SESSION_LENGTH) else cached[0]
        changes = self._changes
        item = self.store.get([Key(SESSION, digest)])[0]
        session = None if item is None else self._session(msgspec.json.decode(item.value, type=_Stored), secret)
        if session is None or is_over(session.expires_at, now, SESSION_LENGTH):
            return None
        with self._caching:
            if changes == self._changes:
                if len(self._cache) >= _CACHED_MAX:
                    self._cache.clear()
                self._cache[digest] = session, now + round(self.cache_seconds * SECOND)
        return session

    def sign_out(self, secret: str) -> None:
        """End a session; nothing happens where there is none."""
        digest = hash_secret(secret)
        item = self.store.get([Key(SESSION, digest)])[0]
        if item is not None:
            stored = msgspec.json.decode(item.value, type=_Stored)
            self._commit([Delete(item.key), Delete(_listed(stored, digest))])

    def _begin(self, stored: _Stored) -> Opened:
        secret = f"ts_{secrets.token_urlsafe(32)}"
        session = self._session(stored, secret)
        if session is None:
            raise Unauthorized("the account or the token was removed a moment ago")
        digest = hash_secret(secret)
        put = Put(Key(SESSION, digest), msgspec.json.encode(stored), 0)
        self._commit([*self._outdated(stored), put, Put(_listed(stored, digest), b"-")])
        return Opened(session, secret)

    def begin(self, account: Account) -> Opened:
        """A new session of an account that has shown all that it must."""
        return self._begin(_Stored(expires_at=self._end(), account=key_of(account.name), stamp=account.stamp))

    def _outdated(self, stored: _Stored) -> list[Delete]:
        """Those sessions of the same account or token that have ended, and those above the limit."""
        items = self.store.query(SESSION_LIST, _owner(stored), limit=2 * SESSIONS_MAX)
        now = self.clock()
        ended = [item for item in items if is_over(time_of_key(item.key.sort[:TIME_KEY_LENGTH]), now, SESSION_LENGTH)]
        too_many = items[: max(0, len(items) - SESSIONS_MAX + 1)]
        keys = [item.key for item in (ended if len(ended) > len(too_many) else too_many)]
        return [Delete(item_key) for key in keys for item_key in (key, Key(SESSION, key.sort.rpartition(".")[2]))]

    def _session(self, stored: _Stored, secret: str) -> Session | None:
        """The session as its account or token is now; None where that has gone."""
        digest = hash_secret(secret)
        csrf = hashlib.blake2b(secret.encode(), digest_size=16, person=b"csrf").hexdigest()
        if stored.token:
            token = self.credentials.find_hashed(stored.token)
            return None if token is None else _session_of_token(token, digest[:12], csrf, stored.expires_at)
        item = self.store.get([Key(ACCOUNT, stored.account)])[0]
        account = None if item is None else msgspec.json.decode(item.value, type=Account)
        if account is None or account.stamp != stored.stamp or self._lacks_second_factor(account):
            return None
        return Session(
            id=digest[:12],
            workspace=account.workspace,
            name=account.name,
            role=account.role,
            csrf=csrf,
            expires_at=stored.expires_at,
        )

    def _lacks_second_factor(self, account: Account) -> bool:
        """Whether an account must have a second factor and has none: its role or the setting may have changed since it
        signed in."""
        required = account.role in self.second_factor_roles
        return required and not account.has_second_factor and not account.by_provider

    def _account(self, workspace: str, name: str) -> tuple[Account, int]:
        item = self.store.get([Key(ACCOUNT, key_of(name))])[0] if _is_name(name) else None
        account = None if item is None else msgspec.json.decode(item.value, type=Account)
        if item is None or account is None or account.workspace != workspace:
            raise NotFound(f"workspace {workspace!r} has no account {name[:ACCOUNT_NAME_LENGTH_MAX]!r}", param="name")
        return account, item.version

    def _commit(self, writes: Sequence[Put | Delete]) -> None:
        if not self._try(writes):
            raise Unavailable("another process is changing this account; try again")

    def _try(self, writes: Sequence[Put | Delete]) -> bool:
        """Whether the writes went through: False where somebody else was first."""
        try:
            return self.store.commit([Batch(writes=writes)])[0] is None
        finally:
            with self._caching:  # even if the commit failed: it may have gone through
                self._changes += 1
                self._cache.clear()

    def _end(self) -> int:
        return self.clock() + SESSION_LENGTH


def _session_of_token(token: Credential, id: str, csrf: str, expires_at: int) -> Session:
    return Session(
        id=id,
        workspace=token.workspace,
        name=token.name,
        role=role_of_scopes(token.scopes),
        csrf=csrf,
        expires_at=expires_at,
        token_scopes=token.scopes,
    )


def key_of(name: str) -> str:
    """The key of an account; upper and lower case are the same."""
    return name.casefold()


def _put(account: Account, expected: int) -> Put:
    return Put(Key(ACCOUNT, key_of(account.name)), msgspec.json.encode(account), expected)


def _listed(stored: _Stored, digest: str) -> Key:
    return Key(SESSION_LIST, _owner(stored), f"{time_key(stored.expires_at)}.{digest}")


def _owner(stored: _Stored) -> str:
    return f"account/{stored.account}" if stored.account else f"token/{stored.token}"


def _is_name(name: str) -> bool:
    return 1 <= len(name) <= ACCOUNT_NAME_LENGTH_MAX and name.isprintable() and not set(" /") & set(name)


def _check_name(name: str) -> None:
    if not _is_name(name):
        form = f"the name of an account has 1 to {ACCOUNT_NAME_LENGTH_MAX} printable characters without blank and /"
        raise InvalidValue(form, param="name")


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise InvalidValue(f"{role[:64]!r} is not a role; choose from {', '.join(ROLES)}", param="role")
