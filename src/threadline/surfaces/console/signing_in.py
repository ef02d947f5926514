"""Signing in to the console: a session for a password or a token, and an entry of the audit log for what came of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from threadline.engine.engine import Engine
from threadline.kernel.audit import AuditEntry
from threadline.kernel.errors import TooManyRequests, Unauthorized
from threadline.kernel.limits import SIGN_IN_NOTES_MAX
from threadline.kernel.time import HOUR, Clock

SIGN_IN = "sign_in"
"""What the audit log calls it, beside the names of operations."""
SIGNED_IN = ("Signed in as {name}", "Signed in")
"""What was done, as the `done` of an operation says it."""


class FailureNotes:
    """Counts the failures to sign in that the audit log has, so that nobody fills it with them. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hour = -1
        self._noted: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def left_out(self, workspace: str) -> int | None:
        """How many were left out since the last one that was noted; None: this one has to be left out as well."""
        hour = self._clock() // HOUR
        if hour != self._hour:
            self._hour = hour
            self._noted.clear()
        if self._noted[workspace] >= SIGN_IN_NOTES_MAX:
            self._left_out[workspace] += 1
            return None
        self._noted[workspace] += 1
        return self._left_out.pop(workspace, 0)


def sign_in(engine: Engine, failures: FailureNotes, workspace: str, name: str, secret: str, address: str) -> str:
    """The secret of a new session: of an account by its password, or without a name of a token. It raises what
    `Accounts.sign_in` raises.

    A failure with a name that is nobody's is noted in ``workspace``, without the name: many have typed a password
    there.
    """
    given: dict[str, Any] = {"address": address} if address else {}
    try:
        if name:
            session, made = engine.accounts.sign_in(name, secret, address)
        else:
            session, made = engine.accounts.sign_in_with_token(secret)
    except (Unauthorized, TooManyRequests) as error:
        account = engine.accounts.named(name)
        workspace = workspace if account is None else account.workspace
        left_out = failures.left_out(workspace)
        if left_out is not None:
            about = {} if account is None else {"name": account.name}
            given |= {"left_out": left_out} if left_out else {}
            engine.audit_log.note(workspace, _entry(engine, "", bool(name), about, given, error.code))
        raise
    engine.audit_log.note(session.workspace, _entry(engine, session.name, bool(name), {}, given, "done"))
    return made


def _entry(
    engine: Engine, who: str, by_password: bool, about: dict[str, str], given: dict[str, Any], outcome: str
) -> AuditEntry:
    return AuditEntry(
        at=engine.clock(),
        who=who,
        credential="account" if by_password else "token",
        surface="console",
        operation=SIGN_IN,
        object=about,
        given=given,
        outcome=outcome,
    )
