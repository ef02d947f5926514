"""The kinds of identifiers that ship, what counts as junk, and how users declare their own."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Identifier
from threadline.kernel.identity import IdentifierKind, IdentityRules

KINDS = (
    IdentifierKind("user_id", priority=0, limit=1),
    IdentifierKind("email", priority=20, normalise="email"),
    IdentifierKind("phone", priority=30, normalise="phone"),
    IdentifierKind("whatsapp", priority=31, normalise="phone"),
    IdentifierKind("external_id", priority=50),
    IdentifierKind("anonymous_id", priority=90),
)

JUNK = frozenset(
    {
        "null", "undefined", "none", "nil", "nan", "anonymous", "guest", "0", "-1", "[object object]", "true", "false",
        "unknown", "n/a", "na", "not_authenticated", "distinct_id", "id", "email", "test@example.com", "[]", "{}",
    }
)  # fmt: skip
"""Case-folded values that broken clients send for "nobody". Each of them would join strangers into one person."""


def rules(declared: Mapping[str, Any] | None = None) -> IdentityRules:
    """Identity rules: what ships, changed by the ``identifiers`` section of the definitions.

    ``declared`` maps a kind to any of priority, limit, normalise, identifying, shared; the special entries
    ``junk`` (a list of values) and ``blocked`` (a list of ``kind:value``) add to the guards.
    Raises `InvalidDefinition` with what to write instead.
    """
    kinds = {kind.name: kind for kind in KINDS}
    junk, blocked = set(JUNK), set()
    for name, body in (declared or {}).items():
        if name == "junk":
            junk |= {str(value).strip().casefold() for value in _list(name, body)}
        elif name == "blocked":
            blocked |= {_identifier(value) for value in _list(name, body)}
        else:
            kinds[name] = _kind(kinds.get(name, IdentifierKind(name)), body)
    draft = IdentityRules(kinds, frozenset(junk))
    normalised = frozenset(n for i in blocked if (n := draft.normalise(i)) is not None)
    return dataclasses.replace(draft, blocked=normalised)


def _list(name: str, body: Any) -> list[Any]:
    if not isinstance(body, list):
        raise InvalidDefinition(f"identifiers.{name} must be a list, e.g. `{name}: [...]`")
    return body


def _identifier(text: Any) -> Identifier:
    kind, colon, value = str(text).partition(":")
    if not colon or not value:
        raise InvalidDefinition(f"identifiers.blocked: {text!r} must be kind:value, e.g. email:info@example.com")
    return Identifier(kind, value)


def _kind(known: IdentifierKind, body: Any) -> IdentifierKind:
    fields = {f.name: f.type for f in dataclasses.fields(IdentifierKind) if f.name != "name"}
    if not isinstance(body, Mapping):
        raise InvalidDefinition(f"identifiers.{known.name} must be a mapping with any of {', '.join(fields)}")
    for key, value in body.items():
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(fields)}"
            raise InvalidDefinition(f"identifiers.{known.name}.{key} is not known{hint}")
        expected = {"int": int, "str": str, "bool": bool}[str(fields[key])]
        if type(value) is not expected:
            raise InvalidDefinition(f"identifiers.{known.name}.{key} must be {expected.__name__}, not {value!r}")
    if body.get("normalise", "strip") not in ("strip", "email", "phone"):
        raise InvalidDefinition(f"identifiers.{known.name}.normalise must be strip, email or phone")
    return dataclasses.replace(known, **body)
