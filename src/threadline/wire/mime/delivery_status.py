"""What became of each recipient by a report that machines can read (RFC 3464, RFC 6533)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from threadline.kernel.mail_reply import bounce_of
from threadline.wire.feedback import Bounce
from threadline.wire.mime.parts import Part, read_part

Action = Literal["failed", "delayed", "delivered"]

RECIPIENTS_MAX = 100
_STATUS = re.compile(r"\b([245]\.\d{1,3}\.\d{1,3})\b")
_REPLY = re.compile(r"\b([245])\d\d\b")
_NO_HOST = frozenset({"5.4.4"})
"""There is no such domain, or nothing that takes mail for it."""
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff.-]{1,64}@[A-Za-z0-9\x80-\U0010ffff.-]{1,255}")


_ESCAPED = re.compile(r"\\x\{(0*(?:[0-9A-Fa-f]{1,4}|10[0-9A-Fa-f]{4}|[0-9A-Fa-f]{5}))\}")


class Recipient(NamedTuple):
    """What became of a message for one recipient."""

    address: str
    action: Action
    """``failed``: given up on; ``delayed``: still tried; ``delivered``: to the mailbox, or on to where none reports."""
    code: str = ""
    """The enhanced status code (RFC 3463) such as ``5.1.1``; empty if the report has none."""
    text: str = ""
    """What the other server said."""

    @property
    def bounce(self) -> Bounce:
        """What a failure is because of. A server that has given up has been refused with 550, or does as if it was."""
        if self.code.startswith("4.") and not self.code.endswith(".0.0"):
            return "transient"
        if self.code in _NO_HOST:
            return "permanent"
        exact = "" if self.code.endswith(".0.0") else self.code
        bounce = bounce_of(550, exact, self.text)
        return bounce or "content"


def address_of(text: str) -> str:
    """The address in a text such as ``rfc822; <ada@example.com>``; empty if there is none that can be one."""
    # As RFC 6533 writes what is not ASCII in a report that is: j\x{FC}rgen@example.com.
    match = _ADDRESS.search(_ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), text[:1_000]))
    if match is None:
        return ""
    local, _, domain = match[0].rpartition("@")
    local, domain = local.strip("'`"), domain.strip(".-")
    if not local or local[0] == "." or local[-1] == "." or ".." in local or "." not in domain or ".." in domain:
        return ""
    return f"{local}@{domain}"


def code_of(text: str) -> str:
    """The enhanced status code in a text; of a plain reply code such as 550 its class, ``5.0.0``."""
    if (status := _STATUS.search(text)) is not None:
        return status[1]
    return f"{reply[1]}.0.0" if (reply := _REPLY.search(text)) is not None else ""


def delivery_status(part: Part) -> list[Recipient]:
    """The recipients in a part of the type ``message/delivery-status``, or of that for internationalised addresses."""
    recipients: dict[str, Recipient] = {}
    for fields in _blocks(part):
        recipient = _recipient(fields)
        if recipient is not None and len(recipients) < RECIPIENTS_MAX:
            recipients.setdefault(recipient.address.lower(), recipient)
    return list(recipients.values())


def _blocks(part: Part) -> Iterator[Part]:
    body = part.body[:256_000].replace(b"\r\n", b"\n")
    if (part.headers.get("content-transfer-encoding") or "").strip().lower() in ("base64", "quoted-printable"):
        body = part.text.encode("utf-8", "replace").replace(b"\r\n", b"\n")
    for block in re.split(rb"\n[ \t]*\n", body.strip(b"\n"))[: 2 * RECIPIENTS_MAX]:
        yield read_part(block.strip(b"\n") + b"\n\n")


def _recipient(fields: Part) -> Recipient | None:
    action = _action(fields.header("action"))
    if action is None:
        return None
    # The final recipient may be an address behind a forward that the sender has never heard of.
    names = ("original-recipient", "final-recipient", "x-actual-recipient")
    address = next((original for name in names if (original := address_of(fields.header(name)))), "")
    if not address:
        return None
    diagnostic, status = fields.header("diagnostic-code"), fields.header("status")
    exact = _STATUS.search(diagnostic) if status.startswith(("5.0.0", "4.0.0")) else None
    code = exact[1] if exact is not None else code_of(status) or code_of(diagnostic)
    return Recipient(address, action, code, (diagnostic.partition(";")[2].strip() or diagnostic or status)[:500])


def _action(text: str) -> Action | None:
    action = text.strip().lower()
    if action.startswith(("fail", "error")):
        return "failed"
    if action.startswith("delayed"):
        return "delayed"
    return "delivered" if action.startswith(("delivered", "relayed", "expanded")) else None
