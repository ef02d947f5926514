"""A mail server of its own process that misbehaves on purpose, and records every message it has accepted.

What it does with a message stands in the recipient's address: `greylist-7@example.com` is told to come again, once, and
then accepted; see `BEHAVIOURS`. An accepted message is on disk before anything is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

RECIPIENT = {  # refused at RCPT: (times, reply)
    "greylist": (1, "451 4.7.1 Greylisted, try again in 300 seconds"),
    "later": (1, "450 4.2.0 Mailbox busy"),
    "broken": (1, "451 4.3.0 Internal error"),
    "closing": (1, "421 4.3.2 Service shutting down"),
    "gone": (99, "550 5.1.1 User unknown"),
    "nobody": (99, "550 No such user here"),
    "full": (99, "552 5.2.2 Mailbox full"),
    "policy": (99, "550 5.7.1 Blocked by policy"),
    "vague": (99, "550 Requested action not taken"),
}
MESSAGE = {  # refused after the final dot
    "tempfail": (1, "451 4.3.0 Queue file write error"),
    "spam": (99, "554 5.7.1 Message looks like spam"),
    "late_gone": (99, "550 5.1.1 User unknown"),
}
DROPS = {"drop_rcpt", "drop_body", "drop_after", "drop_accepted", "garbage"}
"""The connection ends, the first time: at RCPT, in the message, after all of it unaccepted or accepted, or in noise."""
BEHAVIOURS = (*RECIPIENT, *MESSAGE, *DROPS, "too_large", "slow", "silent", "fine")


class Accepted(NamedTuple):
    """A message that the sink took."""

    to: str
    sender: str
    id: str
    """Its Message-ID."""
    size: int
    connection: int
    """The number of the connection that it came over."""
    message: str


class Sink:
    """The server's side."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.seen: Counter[str] = Counter()
        self.connections = 0
        self.log = os.open(options.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY) if options.log else -1
        self.tls = None
        if options.certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(options.certificate)

    async def serve(self) -> None:
        implicit = self.tls if self.options.implicit else None
        server = await asyncio.start_server(self.connected, "127.0.0.1", self.options.port, ssl=implicit, limit=1 << 22)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        async with server:
            await server.serve_forever()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await Session(self, reader, writer).run()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def first_times(self, behaviour: str, step: str, address: str, times: int) -> bool:
        """Whether this happens to an address for the first so many times."""
        self.seen[f"{behaviour}/{step}/{address}"] += 1
        return self.seen[f"{behaviour}/{step}/{address}"] <= times

    def accept(self, sender: str, to: str, message: bytes, connection: int) -> None:
        if self.log < 0:
            return
        found = re.search(rb"(?im)^message-id:\s*<?([^>\s]+)", message)
        shown = message.decode("latin-1") if self.options.whole else ""
        id = found.group(1).decode() if found else ""
        accepted = Accepted(to, sender, id, len(message), connection, shown)
        os.write(self.log, json.dumps(accepted).encode() + b"\n")
        os.fsync(self.log)


class Session:
    """One connection."""

    def __init__(self, sink: Sink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sink = sink
        self.reader = reader
        self.writer = writer
        sink.connections += 1
        self.number = sink.connections
        self.sender: str | None = None
        self.to = ""
        self.logged_in = not sink.options.login
        self.tls = sink.options.implicit or not sink.tls

    def say(self, text: str) -> None:
        self.writer.write(text.encode() + b"\r\n")

    async def run(self) -> None:
        self.say("220 sink ESMTP")
        while line := await self.reader.readline():
            text = line.decode("utf-8", "replace").strip()
            verb = text.split(" ", 1)[0].upper()
            if verb == "QUIT":
                self.say("221 bye")
                break
            if not await self.answered(verb, text):
                break
            if not self.reader._buffer:  # answers to a pipeline go out together
                await self.writer.drain()
        if not self.writer.is_closing():
            await self.writer.drain()

    async def answered(self, verb: str, text: str) -> bool:
        """Whether the connection goes on."""
        if verb == "EHLO":
            self.hello()
        elif verb == "STARTTLS":
            self.say("220 go")
            await self.writer.drain()
            await self.writer.start_tls(self.sink.tls)
            self.tls = True
        elif verb == "AUTH":
            self.logged_in = text == f"AUTH PLAIN {self.sink.options.login}"
            self.say("235 2.7.0 ok" if self.logged_in else "535 5.7.8 wrong password")
        elif verb == "RSET":
            self.sender, self.to = None, ""
            self.say("250 2.0.0 reset")
        elif verb == "MAIL":
            return self.mail(text)
        elif verb == "RCPT":
            return self.recipient(text)
        elif verb == "DATA":
            return await self.data()
        else:
            self.say("502 5.5.2 what?")
        return True

    def hello(self) -> None:
        features = ["sink", *self.sink.options.features.split(",")]
        features += ["STARTTLS"] if not self.tls else ["AUTH PLAIN"] if self.sink.options.login else []
        for number, feature in enumerate(features, 1):
            self.say(f"250{' ' if number == len(features) else '-'}{feature}")

    def mail(self, text: str) -> bool:
        self.sender = re.findall(r"<(.*?)>", text)[0]
        if not self.logged_in:
            self.say("530 5.7.0 log in first")
            self.sender = None
        elif self.sender.startswith("refused"):
            self.say("550 5.7.1 Sender refused")
            self.sender = None
        else:
            self.say("250 2.1.0 ok")
        return True

    def recipient(self, text: str) -> bool:
        address = re.findall(r"<(.*?)>", text)[0]
        if self.sender is None:
            self.say("503 5.5.1 MAIL first")
            return True
        behaviour = behaviour_of(address)
        times, reply = RECIPIENT.get(behaviour, (0, ""))
        if self.sink.first_times(behaviour, "rcpt", address, times):
            self.say(reply)
            return not reply.startswith("421")
        if behaviour == "drop_rcpt" and self.sink.first_times(behaviour, "drop", address, 1):
            return False
        self.to = address
        self.say("250 2.1.5 ok")
        return True

    async def data(self) -> bool:
        if not self.to:
            self.say("554 5.5.1 no valid recipients")
            return True
        self.say("354 go on")
        await self.writer.drain()
        behaviour, to, sender = behaviour_of(self.to), self.to, str(self.sender)
        self.sender, self.to = None, ""
        first = behaviour in DROPS and self.sink.first_times(behaviour, "data", to, 1)
        if first and behaviour == "drop_body":
            await self.reader.read(10)
            self.writer.transport.abort()
            return False
        if behaviour == "too_large":
            await self.reader.read(10)
            self.say("552 5.3.4 Message too large")
            return False
        message = (await self.reader.readuntil(b"\r\n.\r\n"))[:-3]
        times, reply = MESSAGE.get(behaviour, (0, ""))
        if self.sink.first_times(behaviour, "dot", to, times):
            self.say(reply)
            return True
        if first and behaviour in {"drop_after", "garbage"}:
            if behaviour == "garbage":
                self.say("\x00\x01 what is this")
            return False
        self.sink.accept(sender, to, message.replace(b"\r\n..", b"\r\n."), self.number)
        if first and behaviour == "drop_accepted":
            return False
        if behaviour in {"slow", "silent"}:
            await asyncio.sleep(self.sink.options.delay if behaviour == "slow" else 3_600)
        self.say(f"250 2.0.0 Ok: queued as S{sum(self.sink.seen.values()):06d}")
        return True


def behaviour_of(address: str) -> str:
    return address.partition("@")[0].partition("-")[0]


# --- the tests' side ---------------------------------------------------------------------------


class MailSink:
    """A running sink."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.log = folder / "accepted.jsonl"
        options = {"log": self.log, **options}
        arguments = [f"--{name}={value}" for name, value in options.items() if value is not True]
        arguments += [f"--{name}" for name, value in options.items() if value is True]
        self.process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def accepted(self) -> list[Accepted]:
        """Every message so far; one whose line is cut was answered to nobody."""
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        return [Accepted(*json.loads(line)) for line in lines if line.endswith("\n")]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def mail_sink(folder: Path, **options: Any) -> Iterator[MailSink]:
    """A sink with these options; see `main`."""
    sink = MailSink(folder, **options)
    try:
        yield sink
    finally:
        sink.stop()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--log", default="", help="where what was accepted is recorded; empty: nowhere")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--features", default="PIPELINING,8BITMIME,SMTPUTF8,SIZE 1000000")
    options.add_argument("--certificate", default="")
    options.add_argument("--implicit", action="store_true")
    options.add_argument("--login", default="", help="base64 of what AUTH PLAIN must send")
    options.add_argument("--delay", type=float, default=0.2)
    options.add_argument("--whole", action="store_true", help="record the message, not only its size")
    asyncio.run(Sink(options.parse_args()).serve())


if __name__ == "__main__":
    main()
