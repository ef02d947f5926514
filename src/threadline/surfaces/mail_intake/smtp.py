"""A server for LMTP or SMTP, to which a mail server hands what comes in. It passes nothing on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source
from threadline.surfaces.mail_intake.intake import Intake, Result

if TYPE_CHECKING:
    from aiosmtpd.smtp import SMTP, Envelope, Session

BYTES_MAX = 2_500_000
"""The longest mail that is taken; a report about a longer one holds a part of it."""
THREADS = 4
_REPLIES: dict[Result, str] = {
    "taken": "250 2.0.0 Taken",
    "later": "451 4.3.0 Not now, try again later",
    "refused": "554 5.6.0 This mail cannot be taken",
}


class _Handler:
    def __init__(self, intake: Intake, threads: ThreadPoolExecutor, *, lmtp: bool) -> None:
        self._intake = intake
        self._threads = threads
        self._lmtp = lmtp

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take a mail; the answer says that it is durable, or that the sender must keep it."""
        content = envelope.content or b""
        raw = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        recipients, sender = list(envelope.rcpt_tos), envelope.mail_from
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._threads, self._intake.mail, raw, recipients, sender)
        # LMTP (RFC 2033) answers once for each recipient.
        return "\r\n".join([_REPLIES[result]] * (len(recipients) if self._lmtp else 1))


def serve(
    intake: Intake, host: str, port: int, stopping: threading.Event, ready: Callable[[int], object], *, lmtp: bool
) -> None:
    """Listen until ``stopping`` is set; ``ready`` gets the port."""
    made = _protocol(lmtp=lmtp)

    async def listen() -> None:
        with ThreadPoolExecutor(THREADS) as threads:
            handler = _Handler(intake, threads, lmtp=lmtp)
            loop = asyncio.get_running_loop()
            server = await loop.create_server(
                lambda: made(handler, data_size_limit=BYTES_MAX, enable_SMTPUTF8=True, loop=loop), host, port
            )
            async with server:
                ready(server.sockets[0].getsockname()[1])
                await loop.run_in_executor(None, stopping.wait)

    asyncio.run(listen())


def _protocol(*, lmtp: bool) -> Any:
    try:
        from aiosmtpd.lmtp import LMTP
        from aiosmtpd.smtp import SMTP
    except ImportError:
        raise InvalidSetting("mails cannot be received: aiosmtpd is not installed", hint=from_source("mail")) from None
    return LMTP if lmtp else SMTP
