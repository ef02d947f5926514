"""What a webhook's call is made of before it is sent: the payload that may leave, the standard body, hidden secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from threadline.kernel.canonical import canonical_json

RULE_MATCHED = "rule_matched"
"""What the body says happened, unless the call names its own type."""
CAUSES = ("rule", "version", "journey", "run", "step")
"""What decided a call: a rule, or a step of a journey."""
HIDDEN = "(hidden)"
"""Stands for a secret wherever somebody looks at a call."""
_PART_OF_SECRET_MIN = 4
"""Characters of a secret's beginning that are hidden where a text ends with them: it may have been cut there."""


def allowed_payload(payload: Any, names: Collection[str] | None) -> tuple[Any, list[str]]:
    """The payload with the members that may leave, and the names of those that may not; ``names`` None: all may."""
    if names is None or payload is None:
        return payload, []
    if type(payload) is not dict:
        return None, ["payload"]
    withheld = sorted(payload.keys() - set(names))
    return {name: value for name, value in payload.items() if name in names}, withheld


def standard_body(data: Mapping[str, Any], names: Collection[str] | None) -> tuple[bytes, list[str]]:
    """The body as canonical JSON, and the names of what of the payload may not go there. Raises `InvalidValue`."""
    payload, withheld = allowed_payload(data.get("payload"), names)
    content = {name: data[name] for name in CAUSES if name in data}
    if payload is not None:
        content["payload"] = payload
    written = {"type": data.get("type", RULE_MATCHED), "timestamp": data.get("at"), "data": content}
    return canonical_json(written | ({"test": True} if data.get("test") is True else {})), withheld


def without_secrets(text: str, secrets: Collection[str]) -> str:
    """A text in which `HIDDEN` stands for each secret, also for the beginning of one with which the text ends."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
        for length in range(min(len(secret) - 1, len(text)), _PART_OF_SECRET_MIN - 1, -1):
            if text.endswith(secret[:length]):
                text = text[:-length] + HIDDEN
                break
    return text
