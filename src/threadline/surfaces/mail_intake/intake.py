"""One mail or notification at a time, for the operation that takes it; what must wait is told from what is wrong."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Literal

from threadline.capabilities.reach.feedback.operations.intake import notify, receive
from threadline.kernel.errors import LimitExceeded, ThreadlineError
from threadline.kernel.operation import Operation

log = logging.getLogger("threadline.receive")

Result = Literal["taken", "later", "refused"]
"""``later``: the store or the server cannot take it now, and whoever has it must keep it."""


class Intake:
    """Gives what comes in to an engine or to a server."""

    def __init__(self, run: Callable[[Operation, Any], Any]) -> None:
        self._run = run

    def mail(self, raw: bytes, recipients: Sequence[str] = (), sender: str | None = None) -> Result:
        """Take a raw mail, with the recipients and the sender of its envelope where they are known."""
        params = {"raw": b64encode(raw).decode(), "recipients": list(recipients)[:100], "sender": sender}
        return self._take(receive, params)

    def notification(self, text: str) -> Result:
        """Take a notification of SES."""
        return self._take(notify, {"text": text})

    def _take(self, operation: Operation, params: dict[str, Any]) -> Result:
        try:
            result = self._run(operation, operation.params(**params))
        except ThreadlineError as error:
            log.warning("%s: %s", operation.name, error)
            # A token that lacks a scope is the operator's mistake: the mail is not to blame, and must not be lost.
            wrong = isinstance(error, LimitExceeded) or (error.status == 400 and error.code != "invalid_setting")
            return "refused" if wrong else "later"
        log.info("%s: %s", result.kind, ", ".join(item.status for item in result.taken) or "nothing")
        return "taken"
