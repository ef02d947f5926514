"""Debian's Postfix with a configuration and a queue of its own: takes mail, relays it, and writes its own bounces."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.ports import free_port

PROGRAM = "/usr/sbin/postfix"
"""Where Debian has it; that folder is not on everybody's path."""
MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/spool
data_directory = {folder}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
meta_directory = /etc/postfix
shlib_directory = /usr/lib/postfix
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = relay.shop.example
mydestination =
mynetworks = 127.0.0.0/8
maillog_file = {folder}/log
maillog_file_prefixes = /tmp, /var
biff = no
disable_dns_lookups = yes
smtputf8_enable = yes
# Bounces go to the shop's own mailbox; any other domain is relayed to the given port.
virtual_mailbox_domains = shop.example
virtual_mailbox_base = {folder}/mailboxes
virtual_mailbox_maps = inline:{{ {{ news@shop.example = news/ }} }}
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
default_transport = smtp:[127.0.0.1]:{relay}
minimal_backoff_time = 1s
queue_run_delay = 1s
smtp_destination_concurrency_limit = 5
"""
SERVICES = """
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""
START_SECONDS_MAX = 20.0


class Postfix:
    """A running Postfix."""

    def __init__(self, folder: Path, relay: int) -> None:
        self.port = free_port()
        self.folder = folder
        user = pwd.getpwnam("postfix")
        for name in ("spool", "data", "mailboxes"):
            (folder / name).mkdir()
        for name in ("data", "mailboxes"):
            os.chown(folder / name, user.pw_uid, user.pw_gid)
        folder.chmod(0o755)
        main = MAIN.format(folder=folder, relay=relay, uid=user.pw_uid, gid=user.pw_gid)
        (folder / "main.cf").write_text(main)
        (folder / "master.cf").write_text(SERVICES.format(port=self.port))
        self.process = subprocess.Popen(
            [PROGRAM, "-c", str(folder), "start-fg"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "errors").open("w"),
            start_new_session=True,
        )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            assert self.process.poll() is None, (folder / "errors").read_text()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                return connection.recv(3) == b"220"
        except OSError:
            return False

    def log(self) -> str:
        """What it has logged."""
        file = self.folder / "log"
        return file.read_text() if file.exists() else (self.folder / "errors").read_text()

    def mailbox(self) -> list[bytes]:
        """The messages that came back to news@shop.example."""
        return [file.read_bytes() for file in sorted((self.folder / "mailboxes" / "news" / "new").glob("*"))]

    def stop(self) -> None:
        subprocess.run([PROGRAM, "-c", str(self.folder), "stop"], capture_output=True, check=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def postfix(relay: int) -> Iterator[Postfix]:
    """A Postfix that relays to this port. Skips where there is none."""
    if not Path(PROGRAM).exists():
        pytest.skip("postfix is missing: `make setup` installs it where it may")
    if os.getuid() != 0:
        pytest.skip("Postfix is started by root alone")
    # Not below the folder of the tests: that is closed to other users, and Postfix runs as one.
    with tempfile.TemporaryDirectory(prefix="threadline-postfix-") as folder:
        made = Postfix(Path(folder), relay)
        try:
            yield made
        finally:
            made.stop()
