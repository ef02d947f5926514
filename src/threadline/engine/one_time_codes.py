"""One-time codes of a second factor: those of an authenticator app (RFC 6238), and recovery codes for who has lost it.

The code of an app is a function of a shared secret and of the time, and good for half a minute:

    >>> from threadline.engine.one_time_codes import code_at
    >>> code_at(b"12345678901234567890", 37037037)
    '050471'
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from urllib.parse import quote, urlencode

import msgspec

from threadline.engine.credentials import hash_secret
from threadline.kernel.time import SECOND

STEP = 30 * SECOND
SKEW_STEPS = 1
"""How many steps a phone's clock may be off, to either side."""
SECRET_BYTES = 20
"""What RFC 4226, section 4, recommends."""
ISSUER = "Threadline"
RECOVERY_CODES = 10
_DIGITS = 6
_RECOVERY_BYTES = 10
"""80 bits: with so many to guess a quick hash keeps a code."""
_GROUP = 4


class SecondFactor(msgspec.Struct, frozen=True, kw_only=True):
    """What an account has to check one-time codes with."""

    sealed: str
    """The secret, enciphered with the store's signing key for this account alone."""
    since: int
    last_step: int
    """Step of the last code that was taken: none is taken twice, nor an earlier one."""
    recovery: tuple[str, ...]
    """Hashes of the recovery codes that are left."""


def fresh_secret() -> bytes:
    """A new shared secret."""
    return secrets.token_bytes(SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """The secret as apps take it by hand."""
    return base64.b32encode(secret).decode().rstrip("=")


def enrolment_address(name: str, secret: bytes) -> str:
    """The ``otpauth`` address that an app reads from a QR code."""
    label = quote(f"{ISSUER}:{name}", safe="")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret_text(secret), 'issuer': ISSUER})}"


def code_at(secret: bytes, step: int) -> str:
    """The code of a step (RFC 4226 with SHA-1, which is what every app computes)."""
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**_DIGITS:0{_DIGITS}d}"


def step_of(secret: bytes, code: str, now: int, after: int) -> int | None:
    """The step whose code this is, of those that are good now and later than ``after``; None: it is of none."""
    middle, match = now // STEP, None
    for step in range(middle - SKEW_STEPS, middle + SKEW_STEPS + 1):
        if hmac.compare_digest(code_at(secret, step).encode(), code.encode("utf-8", "replace")) and step > after:
            match = step
    return match


def fresh_recovery_codes() -> list[str]:
    """New recovery codes, in groups of four."""
    return [_grouped(base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode()) for _ in range(RECOVERY_CODES)]


def recovery_hash(code: str) -> str:
    """The hash of a recovery code, however it is written; "" for what cannot be one."""
    text = "".join(code.split()).replace("-", "").upper()
    try:
        is_code = len(base64.b32decode(text)) == _RECOVERY_BYTES
    except (binascii.Error, ValueError):
        is_code = False
    return hash_secret(text) if is_code else ""


def _grouped(text: str) -> str:
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP)).lower()
