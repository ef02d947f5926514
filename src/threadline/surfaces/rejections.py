"""Messages of a wire that became no event, as entries of the rejected log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from threadline.kernel.rejected import KEY_LENGTH_MAX, RejectedEntry
from threadline.wire.rejection import MASK, Rejection

SECRET_LENGTH_MIN = 8
"""A secret that is shorter is a name in a test, and may stand anywhere in a text that says nothing of it."""


def entry_of(
    rejection: Rejection,
    id: str,
    *,
    workspace: str,
    source: str,
    form: str,
    received_at: int,
    secrets: Sequence[str] = (),
) -> RejectedEntry:
    """The entry of a message, without the secrets that came with it. ``form``: of which wire it was to be."""
    payload, form = _payload(rejection.raw, form, secrets)
    return RejectedEntry(
        id=id,
        workspace=workspace,
        source=source,
        code=rejection.code,
        message=rejection.message,
        received_at=received_at,
        payload=payload,
        form=form,
        key=rejection.key[:KEY_LENGTH_MAX],
        envelope=rejection.envelope if form != "text" else None,
    )


def _payload(raw: bytes, form: str, secrets: Sequence[str]) -> tuple[Any, str]:
    """The message as JSON if it can be kept as that, or else as text."""
    try:
        payload = msgspec.json.decode(raw) if form != "text" else None
        msgspec.json.encode(payload)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        text = raw.decode("utf-8", "backslashreplace").replace("\0", "\\x00")
        for secret in secrets:
            if len(secret) >= SECRET_LENGTH_MIN:
                text = text.replace(secret, MASK)
        return text, "text"
    return payload, form
