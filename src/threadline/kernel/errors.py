"""Every error a caller can meet: what happened, what to do about it, and the HTTP status it travels under.

Exceptions of Python, problem documents (RFC 9457) of HTTP and exit messages of the command line are the same tree.
`ThreadlineError` is its root.

    >>> import threadline
    >>> with threadline.open("memory:") as shop:
    ...     try:
    ...         shop.person("nobody")
    ...     except threadline.NotFound as error:
    ...         (error.code, error.status)
    ('not_found', 404)

``code`` is stable and for programs, ``hint`` says what to do, ``param`` which parameter is at fault. 429 and 503
(`TooManyRequests`, `Unavailable` and what is under it) are worth another attempt later; 4xx is not. docs/errors.md
lists them all.
"""

from __future__ import annotations


class ThreadlineError(Exception):
    """The root. ``code`` is stable and machine-readable, ``status`` the HTTP status, ``hint`` what to do."""

    code = "internal"
    status = 500
    hint = ""
    param = ""
    """The parameter that is at fault, where it is one."""
    is_shown = False
    """Whether callers read what happened although they are not at fault; else no more than of which kind it is."""

    def __init__(self, message: str = "", *, hint: str | None = None, param: str = "") -> None:
        super().__init__(message or type(self).__doc__ or self.code)
        if hint is not None:
            self.hint = hint
        if param:
            self.param = param

    @property
    def is_inside(self) -> bool:
        """Whether its message is for the log alone: the server is at fault, and the text may show what is inside."""
        return self.status >= 500 and not self.is_shown


class InvalidValue(ThreadlineError):
    """A value does not have the form that is asked for."""

    code, status = "invalid_value", 400


class InvalidDefinition(InvalidValue):
    """A declaration in the definitions is wrong; the message names file, line and what to write instead."""

    code = "invalid_definition"

    def __init__(
        self, message: str = "", *, hint: str | None = None, param: str = "", columns: dict[str, int] | None = None
    ) -> None:
        super().__init__(message, hint=hint, param=param)
        self.columns = columns or {}
        """Line of the message -> the column at which what it is about begins, from 1; 0 where that is not known."""


class InvalidSetting(InvalidValue):
    """A setting is unknown or has a value that cannot be used."""

    code = "invalid_setting"


class InvalidAddress(InvalidValue):
    """A text is not a mail address that mail can be sent to; the message names what is wrong with it."""

    code = "invalid_address"


class EventRejected(InvalidValue):
    """An event cannot be recorded; ``code`` says why and the rejected log keeps it for correction."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class MalformedBody(InvalidValue):
    """The body of a request is not what this address reads; nothing of it was recorded."""

    code = "malformed_body"


class LimitExceeded(InvalidValue):
    """Something is larger than its limit; nothing of it was written."""

    code, status = "limit_exceeded", 413


class Unauthorized(ThreadlineError):
    """No usable credential came with the request."""

    code, status = "unauthorized", 401


class Forbidden(ThreadlineError):
    """The credential is good but its scopes do not allow this."""

    code, status = "forbidden", 403


class NotFound(ThreadlineError):
    """There is nothing under that name in this workspace."""

    code, status = "not_found", 404


class Conflict(ThreadlineError):
    """The state is not the one the caller expected; read it again and decide again."""

    code, status = "conflict", 409


class MergeRefused(Conflict):
    """Joining these people would break an identity limit."""

    code = "merge_refused"


class TooManyRequests(ThreadlineError):
    """A rate limit is used up for now."""

    code, status = "too_many_requests", 429


class NotConfigured(ThreadlineError):
    """This process lacks a setting for it; its operator can set the one that the hint names."""

    code, status, is_shown = "not_configured", 501, True


class Unavailable(ThreadlineError):
    """The store cannot answer now; nothing was half written, and the same request may succeed later."""

    code, status = "unavailable", 503


class BeingErased(Unavailable):
    """The person is being erased; who comes back later is a new person."""

    code = "being_erased"
    hint = "Send it again in a few seconds."


class StoreFull(Unavailable):
    """The store has no room left; free space and send the same events again."""

    code = "store_full"


class StoreBusy(Unavailable):
    """Another process holds the store; wait for it or stop it, then retry."""

    code = "store_busy"


class StoreMissing(Unavailable):
    """The store's file or its log was removed, renamed or replaced under the running process."""

    code = "store_missing"
    hint = (
        "Put the files back under their names, or stop the process: what was acknowledged before is in the renamed "
        "file, or in a copy named .rescued-1 if the file was removed."
    )


class StoreDamaged(ThreadlineError):
    """The store's content breaks an invariant; run `threadline verify`, restore a backup if it fails."""

    code = "store_damaged"
    hint = "`threadline verify` says what is wrong with it; a backup that is whole can be put in its place."


class EventDamaged(StoreDamaged):
    """An event of the log is not as it was written; `threadline repair` puts a good copy in its place."""

    is_shown = True
    hint = "`threadline repair --from BACKUP` takes a good copy from a backup or another store."

    def __init__(self, id: str, thread: str, sequence: int, why: str, position: str = "") -> None:
        where = f"at position {position} of the log" if position else f"number {sequence} of thread {thread}"
        super().__init__(f"event {id} ({where}) is damaged: {why}")
        self.id, self.thread, self.sequence = id, thread, sequence
        self.why, self.position = why, position

    def __reduce__(self) -> tuple[type[EventDamaged], tuple[str, str, int, str, str]]:
        # The arguments, not the message: it travels between processes.
        return type(self), (self.id, self.thread, self.sequence, self.why, self.position)


class OutcomeUnknown(ThreadlineError):
    """Whether an effect happened cannot be known from here."""

    code, status = "outcome_unknown", 502
    hint = "Look for it where it was sent to, then resolve it by hand: it happened, or it is to be sent again."
