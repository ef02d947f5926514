"""The sender of mail: SMTP, Amazon SES or the development inbox, as the declared provider's URL says."""

from __future__ import annotations

import socket
import ssl
from typing import Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.inbox import PROVIDER_URL
from threadline.kernel.sender import Sender, SenderFactory, SenderPorts
from threadline.senders.inbox import InboxSender
from threadline.senders.ses import Region, SesSender
from threadline.senders.smtp import SmtpSender
from threadline.senders.smtp_connection import Security, Server
from threadline.settings import Settings

KIND = "mail"
TIMEOUT_SECONDS = 10.0
TIMEOUT_SECONDS_MAX = 12.0
"""A dispatcher's lease has at least 15 seconds left when it sends; what the server accepts later nobody learns."""
ENVIRONMENT = "env:"
_PORTS = {"smtp": 587, "smtps": 465}
_OPTIONS = {
    "smtp": {"tls", "ca", "timeout", "hello"},
    "smtps": {"ca", "timeout", "hello"},
    "ses": {"configuration_set", "endpoint", "timeout"},
}
_EXAMPLES = "inbox:, smtp://USER:PASSWORD@mail.example.com:587 or ses://eu-central-1"


class Provider(Protocol):
    """What is declared of the queue that mail waits in."""

    url: str
    at_once: int


def make_sender(url: str, ports: SenderPorts[Settings], at_once: int) -> Sender:
    """The sender of a provider's URL. Raises `InvalidSetting`, which does not repeat a password."""
    if url == PROVIDER_URL:
        return InboxSender(ports.store, ports.clock)
    if url.startswith(ENVIRONMENT):
        name = url.removeprefix(ENVIRONMENT)
        if not (url := ports.environment(name)):
            raise InvalidSetting(f"mail: the provider is {ENVIRONMENT}{name}, which is not set")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidSetting(f"mail: the provider's URL cannot be read: {error}") from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = _OPTIONS.get(parts.scheme)
    if known is None or not parts.hostname:
        raise InvalidSetting("mail: the provider is none that we know", hint=f"Write {_EXAMPLES}.")
    if unknown := sorted(options.keys() - known):
        raise InvalidSetting(
            f"mail: the provider's URL has no option {unknown[0]!r}", hint=f"It has {', '.join(sorted(known))}."
        )
    timeout = _timeout(options)
    if parts.scheme == "ses":
        region = Region(parts.hostname, options.get("configuration_set", ""), options.get("endpoint", ""))
        return SesSender(region, timeout, at_once)
    return SmtpSender(_server(parts, port or _PORTS[parts.scheme], options), timeout)


def _server(parts: SplitResult, port: int, options: dict[str, str]) -> Server:
    tls = options.get("tls", "starttls")
    security: Security = "tls" if parts.scheme == "smtps" else "off" if tls == "off" else "starttls"
    if tls not in ("off", "starttls"):
        raise InvalidSetting(f"mail: tls={tls} is not known", hint="It is starttls, the default, or off.")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if user and security == "off":
        raise InvalidSetting("mail: a password would be sent in clear", hint="Leave out tls=off, or the user.")
    host = parts.hostname or ""
    hello = options.get("hello") or socket.gethostname()
    return Server(host, port, security, user, password, hello, _context(options) if security != "off" else None)


def _context(options: dict[str, str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=options.get("ca") or None)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting(f"mail: the certificates of ca={options.get('ca')} cannot be read: {error}") from None


def _timeout(options: dict[str, str]) -> float:
    try:
        seconds = float(options.get("timeout", TIMEOUT_SECONDS))
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= TIMEOUT_SECONDS_MAX:
        raise InvalidSetting(f"mail: timeout is 1 to {TIMEOUT_SECONDS_MAX:g} seconds")
    return seconds


def _make(ports: SenderPorts[Settings]) -> Sender:
    declared: list[Provider] = ports.destinations(KIND)
    if not declared:
        return make_sender(PROVIDER_URL, ports, 1)
    return make_sender(declared[0].url, ports, declared[0].at_once)


SENDER = SenderFactory(KIND, _make)
