"""Signing in to the console, and what somebody does about their own account: each is an entry of the audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from threadline.engine.accounts import Opened, Session
from threadline.engine.engine import Engine
from threadline.engine.second_factors import Enrolled
from threadline.kernel.audit import AuditEntry
from threadline.kernel.errors import Forbidden, TooManyRequests, Unauthorized
from threadline.kernel.limits import SIGN_IN_NOTES_MAX
from threadline.kernel.time import HOUR, Clock

T = TypeVar("T")

SIGN_IN = "sign_in"
"""What the audit log calls it, beside the names of operations."""
OWN_ACTS: Mapping[str, tuple[str, ...]] = {
    SIGN_IN: ("Signed in as {name}", "Signed in"),
    "password_change": ("Changed their password",),
    "password_set": ("Set the password of {name} with a link",),
    "recovery_codes_renew": ("Got new recovery codes",),
    "second_factor_enrol": ("Turned their second factor on",),
    "second_factor_drop": ("Turned their second factor off",),
}
"""What somebody does about their own account, as the `done` of an operation says it."""


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


class Attempt(NamedTuple):
    """Somebody who wants in, as the audit log will name them."""

    credential: str
    """``account`` or ``token``."""
    workspace: str
    """Where a failure with a name that is nobody's is noted."""
    name: str = ""
    """Of the account, where one is named."""
    given: Mapping[str, Any] = MappingProxyType({})
    """Where it came from, and by what: no secrets."""


def sign_in(engine: Engine, failures: FailureNotes, attempt: Attempt, work: Callable[[], T]) -> T:
    """What work gives, which begins a session or asks for more. A failure is noted, without a name that is nobody's:
    many have typed a password there. Raises what the work raises."""
    try:
        made = work()
    except (Unauthorized, TooManyRequests, Forbidden) as error:
        account = engine.accounts.named(attempt.name)
        workspace = attempt.workspace if account is None else account.workspace
        left_out = failures.left_out(workspace)
        if left_out is not None:
            about = {} if account is None else {"name": account.name}
            given = {**attempt.given, **({"left_out": left_out} if left_out else {})}
            note(engine, workspace, SIGN_IN, attempt.credential, about=about, given=given, outcome=error.code)
        raise
    if (session := _session(made)) is not None:
        note(engine, session.workspace, SIGN_IN, attempt.credential, who=session.name, given=attempt.given)
    return made


def _session(made: object) -> Session | None:
    """The session that has begun; None: something more is asked for."""
    opened = made.opened if isinstance(made, Enrolled) else made
    return opened.session if isinstance(opened, Opened) else None


def note(
    engine: Engine,
    workspace: str,
    operation: str,
    credential: str = "account",
    *,
    who: str = "",
    about: Mapping[str, str] = MappingProxyType({}),
    given: Mapping[str, Any] = MappingProxyType({}),
    outcome: str = "done",
) -> None:
    """An entry of the audit log about somebody's own account."""
    entry = AuditEntry(
        at=engine.clock(),
        who=who,
        credential=credential,
        surface="console",
        operation=operation,
        object=dict(about),
        given=dict(given),
        outcome=outcome,
    )
    engine.audit_log.note(workspace, entry)
