"""Mails as their preparation hands them to a sender, and a certificate for servers of this machine."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from threadline.kernel.effect import Effect


def mail(to: str, id: str = "0" * 32, **more: Any) -> Effect:
    """A mail to one recipient."""
    text = (
        f"From: Shop <news@shop.example>\r\nTo: {to}\r\nSubject: Hello\r\n"
        f"Message-ID: <{id}@shop.example>\r\n\r\nHello!\r\n.\r\nBye\r\n"
    )
    data = {
        "message": text.encode(),
        "from": "news@shop.example",
        "to": to,
        "smtputf8": not to.isascii(),
        "workspace": "default",
        "record": {"message": id, "template": "hello", "address": to, "subject": "Hello"},
    }
    return Effect(kind="mail", key=id, data={**data, **more}, queue="mail")


def certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file; it is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file = folder / "server.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file
