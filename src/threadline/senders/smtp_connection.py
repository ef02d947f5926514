"""One SMTP connection: opened securely, then one transaction for each message, within a deadline."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import time
from typing import Literal, NamedTuple

from threadline.kernel.mail_reply import status_of

REPLY_BYTES_MAX = 16_384
TEXT_LENGTH_MAX = 300
DOT = b".\r\n"
_NO_EHLO = frozenset({500, 501, 502, 504, 550})
_BARE = re.compile(rb"\r\n|\r|\n")
_UNSAFE = re.compile(r"[\x00-\x20\x7f<>\ud800-\udfff]")

Step = Literal["connect", "hello", "tls", "login", "mail", "recipient", "data", "message"]
Security = Literal["starttls", "tls", "off"]


class Server(NamedTuple):
    """Where mail is handed over, and how."""

    host: str
    port: int
    security: Security = "starttls"
    user: str = ""
    password: str = ""
    hello: str = "localhost"
    tls: ssl.SSLContext | None = None
    """Set unless ``security`` is off."""


class Mail(NamedTuple):
    """One message for one recipient."""

    message: bytes
    sender: str
    """The envelope's; empty for the null sender."""
    recipient: str
    smtputf8: bool = False


class Reply(NamedTuple):
    """A reply of the server."""

    code: int
    text: str

    @property
    def status(self) -> str:
        """The enhanced status code; empty if there is none."""
        return status_of(self.text)

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


class Refused(Exception):
    """The server refused a step with a reply; nothing was accepted."""

    def __init__(self, step: Step, reply: Reply) -> None:
        super().__init__(f"{step}: {reply}")
        self.step = step
        self.reply = reply


class Unsendable(Exception):
    """The server or the protocol cannot carry this message; nothing was sent."""


class Lost(Exception):
    """The connection failed before the server could accept the message."""


class Unanswered(Exception):
    """The whole message was sent, and no answer says whether it was accepted."""


class Connection(smtplib.SMTP):
    """An open connection. Whatever it raises but `Refused` and `Unsendable`, it cannot be used again."""

    def __init__(self, server: Server, deadline: float) -> None:
        super().__init__(local_hostname=server.hello)
        self._received = b""
        self.deadline = deadline
        try:
            self._open(server)
        except BaseException:
            self.close()
            raise

    def _open(self, server: Server) -> None:
        try:
            plain = socket.create_connection((server.host, server.port), self._left())
            # The end of a message is often a packet of its own; without this it would wait for an acknowledgement.
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = plain
            if server.security == "tls":
                self._secure(server)
            _expect(220, "connect", self.getreply())
            self._hello()
            if server.security == "starttls":
                self._start_tls(server)
            if server.user:
                self._login(server)
        except (OSError, smtplib.SMTPException, UnicodeError, ValueError) as error:
            raise _lost(error) from None

    def _hello(self) -> None:
        answer = self.ehlo()
        if answer[0] in _NO_EHLO:
            answer = self.helo()  # RFC 5321, section 3.2: a server of before 1995, or one behind a proxy that hides it
        _expect(250, "hello", answer)

    def _secure(self, server: Server) -> None:
        assert self.sock is not None
        assert server.tls is not None
        self.sock = server.tls.wrap_socket(self.sock, server_hostname=server.host)

    def _start_tls(self, server: Server) -> None:
        if not self.has_extn("starttls"):
            raise Refused("tls", Reply(0, "the server offers no STARTTLS; `?tls=off` would go on without"))
        _expect(220, "tls", self.docmd("STARTTLS"))
        if self._received:
            # Somebody between us and the server could have put replies here that would pass for encrypted ones.
            raise Lost("the server went on in clear after STARTTLS")
        self._secure(server)
        self._hello()

    def _login(self, server: Server) -> None:
        try:
            self.login(server.user, server.password)
        except smtplib.SMTPResponseException as error:
            raise Refused("login", _reply(error.smtp_code, error.smtp_error)) from None
        except smtplib.SMTPNotSupportedError as error:
            raise Refused("login", Reply(0, str(error))) from None

    def transmit(self, mail: Mail, deadline: float) -> Reply:
        """Hand a message over; the reply that accepted it. Raises `Refused`, `Unsendable`, `Lost` and `Unanswered`."""
        self.deadline = deadline
        body = _stuffed(mail.message)
        commands = [*self._envelope(mail, len(body)), "DATA"]
        try:
            self._begin(commands)
        except (OSError, smtplib.SMTPException) as error:
            raise _lost(error) from None
        try:
            self.send(body + DOT)
        except (OSError, smtplib.SMTPException) as error:
            # The end of the dot is missing, so nothing was accepted. A server that refuses in the middle of a message
            # and closes has said why: without its reply, a message that is too large would be tried for ever.
            reply = self._reply_before(error)
        else:
            reply = self._reply_to_the_message()
        if reply.code == 421:
            self.close()
        if 400 <= reply.code < 600:
            raise Refused("message", reply)
        if not 200 <= reply.code < 300:
            raise Unanswered(f"the answer to the message is no answer: {reply}"[:TEXT_LENGTH_MAX])
        return reply

    def _reply_before(self, error: Exception) -> Reply:
        """The reply that came before the connection failed in the middle of a message. Raises `Lost` without one."""
        try:
            reply = _reply(*self.getreply())
        except (OSError, smtplib.SMTPException):
            raise _lost(error) from None
        if not 400 <= reply.code < 600:
            raise _lost(error)
        self.close()
        return reply

    def _reply_to_the_message(self) -> Reply:
        try:
            return _reply(*self.getreply())
        except (OSError, smtplib.SMTPException) as error:
            raise Unanswered(_text_of(error)) from None

    def _envelope(self, mail: Mail, size: int) -> tuple[str, str]:
        """The commands MAIL and RCPT. Raises `Unsendable` where the server lacks what they need."""
        ascii_only = mail.message.isascii()
        for address in (mail.sender, mail.recipient):
            if _UNSAFE.search(address):
                raise Unsendable(f"{address!r} cannot stand in an envelope")
        utf8 = mail.smtputf8 or not (mail.sender.isascii() and mail.recipient.isascii())
        if utf8 and not self.has_extn("smtputf8"):
            raise Unsendable("the server takes no addresses or headers in UTF-8 (SMTPUTF8)")
        if not ascii_only and not self.has_extn("8bitmime"):
            raise Unsendable("the server takes no messages with 8 bits (8BITMIME)")
        most = self.esmtp_features.get("size", "")
        if most.isdecimal() and 0 < int(most) < size:
            raise Unsendable(f"the message has {size:,} bytes, and the server takes {int(most):,}")
        parameters = [f"SIZE={size}"] if self.has_extn("size") else []
        parameters += ["BODY=8BITMIME"] if not ascii_only else []
        parameters += ["SMTPUTF8"] if utf8 else []
        self.command_encoding = "utf-8" if utf8 else "ascii"
        return " ".join([f"MAIL FROM:<{mail.sender}>", *parameters]), f"RCPT TO:<{mail.recipient}>"

    def _begin(self, commands: list[str]) -> None:
        """Send the commands of the envelope, together where the server allows it (PIPELINING, RFC 2920)."""
        steps: tuple[Step, ...] = ("mail", "recipient", "data")
        refused: Refused | None = None
        pipelined = self.has_extn("pipelining")
        if pipelined:
            self.send("".join(f"{command}\r\n" for command in commands))
        for step, command in zip(steps, commands, strict=True):
            reply = _reply(*(self.getreply() if pipelined else self.docmd(command)))
            if reply.code < 0:
                raise smtplib.SMTPServerDisconnected(f"no reply of SMTP: {reply.text}")
            if step == "data" and reply.code == 354 and refused is not None:
                # RFC 2920, section 3.1: the server waits for a message, though nobody is to get it.
                self.send(DOT)
                self.getreply()
            if refused is None and not (reply.code == 354 if step == "data" else 200 <= reply.code < 300):
                refused = Refused(step, reply)
            if refused is not None and not pipelined:
                break
        if refused is not None:
            self._reset(refused.reply)
            raise refused

    def _reset(self, reply: Reply) -> None:
        """End the transaction that was refused; the connection is closed where it cannot go on."""
        try:
            goes_on = reply.code != 421 and self.docmd("RSET")[0] == 250
        except (OSError, smtplib.SMTPException):
            goes_on = False
        if not goes_on:
            self.close()

    @property
    def is_open(self) -> bool:
        """Whether another message can be sent."""
        return self.sock is not None

    def send(self, s: str | bytes) -> None:  # type: ignore[override]
        """As in the base class, within the deadline; after a failure, what the server has sent can still be read."""
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected("not connected")
        self.sock.settimeout(self._left())
        self.sock.sendall(s.encode(self.command_encoding) if isinstance(s, str) else s)

    def getreply(self) -> tuple[int, bytes]:
        """As in the base class, within the deadline however slowly bytes come, and bounded as a whole."""
        lines: list[bytes] = []
        while True:
            line = self._line()
            lines.append(line[4:].strip())
            if not line[:3].isdigit():
                self.close()
                return -1, line[:TEXT_LENGTH_MAX]
            if line[3:4] != b"-":
                return int(line[:3]), b"\n".join(lines)
            if sum(map(len, lines)) > REPLY_BYTES_MAX:
                self.close()
                raise smtplib.SMTPServerDisconnected("the reply is too long")

    def _line(self) -> bytes:
        while b"\n" not in self._received:
            if self.sock is None:
                raise smtplib.SMTPServerDisconnected("not connected")
            self.sock.settimeout(self._left())
            more = self.sock.recv(4_096)
            if not more or len(self._received) > REPLY_BYTES_MAX:
                self.close()
                raise smtplib.SMTPServerDisconnected("the server closed the connection")
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left


def _expect(code: int, step: Step, answer: tuple[int, bytes]) -> None:
    reply = _reply(*answer)
    if reply.code != code:
        raise Refused(step, reply) if reply.code > 0 else Lost(f"{step}: no reply of SMTP: {reply.text}")


def _lost(error: Exception) -> Lost:
    return Lost(_text_of(error))


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:TEXT_LENGTH_MAX]


def _reply(code: int, text: bytes | str) -> Reply:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return Reply(code, " ".join(shown.split())[:TEXT_LENGTH_MAX])


def _stuffed(message: bytes) -> bytes:
    """The message with CRLF alone as its line ends and every leading dot doubled, ending in CRLF.

    A bare CR or LF could end the message early at some servers (SMTP smuggling).
    """
    ends = message.count(b"\r\n")
    if ends != message.count(b"\n") or ends != message.count(b"\r"):
        message = _BARE.sub(b"\r\n", message)
    if not message.endswith(b"\r\n"):
        message += b"\r\n"
    if message.startswith(b"."):
        message = b"." + message
    return message.replace(b"\r\n.", b"\r\n..") if b"\r\n." in message else message
