"""The kinds of identifiers that ship, what counts as junk, and how users declare their own."""

from __future__ import annotations

import dataclasses
from types import NoneType
from typing import Any

from threadline.capabilities.foundation.definitions import Definitions, Noted, Part, Plain
from threadline.capabilities.foundation.definitions.declaring import Form, listed, parsed, struct
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Identifier
from threadline.kernel.identity import KIND_FORM, IdentifierKind, IdentityRules, is_kind, is_placeholder
from threadline.kernel.limits import IDENTIFIER_KIND_LENGTH_MAX
from threadline.kernel.phone import is_region
from threadline.kernel.section import Section

KINDS = (
    IdentifierKind("user_id", priority=0, limit=1),
    IdentifierKind("email", priority=20, normalise="email"),
    IdentifierKind("phone", priority=30, normalise="phone"),
    IdentifierKind("whatsapp", priority=31, normalise="whatsapp"),
    IdentifierKind("external_id", priority=50),
    IdentifierKind("anonymous_id", priority=90),
    # Strangers share one, and anybody can name anybody's.
    IdentifierKind("ip_address", priority=100, joins=False, personal=True),
)

JUNK = frozenset(
    {
        "null", "undefined", "none", "nil", "nan", "anonymous", "guest", "-1", "[object object]", "true", "false",
        "unknown", "n/a", "na", "not_authenticated", "distinct_id", "id", "email", "[]", "{}",
    }
)  # fmt: skip
"""Case-folded values that broken clients send for "nobody". Each of them would join strangers into one person. Others
are known by their pattern: `threadline.kernel.identity.is_placeholder`."""


def _blocked(written: str) -> Identifier | None:
    kind, _, value = written.strip().partition(":")
    return Identifier(kind, value) if value and is_kind(kind) else None


def _written(part: Part) -> str:
    # As it is written: YAML would read some junk as null or as a number.
    if part_text := part.written.strip():
        return part_text
    raise InvalidValue("must be text")


def _shipped(part: Part) -> str:
    part_text = _written(part).casefold()
    if part_text not in JUNK and not is_placeholder(part_text):
        raise InvalidValue(f"must be a placeholder or one of the values that ship as junk: {', '.join(sorted(JUNK))}")
    return part_text


_SCALAR = ["string", "number", "boolean", "null"]
_LISTS: dict[str, Form[Any]] = {
    "junk": listed(
        Form((str, int, float, bool, NoneType), "text", _written, {"type": _SCALAR}), wanted="a list, such as [guest]"
    ),
    "not_junk": listed(
        Form((str, int, float, bool, NoneType), "text", _shipped, {"type": _SCALAR}), wanted="a list, such as [guest]"
    ),
    "blocked": listed(
        parsed(_blocked, "kind:value, such as email:info@example.com", pattern="^[^:]+:.+$"),
        wanted="a list of kind:value",
    ),
}


def _region(written: str) -> str:
    if not is_region(written):
        raise InvalidValue("write its two capital letters (ISO 3166)")
    return written


_REGION_KEY = "phone_region"
# A boolean as well: YAML reads the two letters of Norway as one.
_REGION = parsed(_region, "a country such as DE", (str, bool), type=["string", "boolean"], pattern="^[A-Z]{2}$")

IDENTIFIERS_SECTION = Section(
    "identifiers",
    {
        "type": "object",
        "description": "What identifies people: kinds by name, values that name nobody, identifiers that are shared.",
        "properties": {name: form.schema for name, form in _LISTS.items()} | {_REGION_KEY: _REGION.schema},
        "propertyNames": {"pattern": f"^[^:]{{1,{IDENTIFIER_KIND_LENGTH_MAX}}}$"},
        "additionalProperties": struct(IdentifierKind, given=["name"]).schema,
    },
)


def rules(definitions: Definitions | None = None) -> IdentityRules:
    """Identity rules: what ships, changed by the section ``identifiers``. Problems are noted there, not raised."""
    kinds = {kind.name: kind for kind in KINDS}
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS}
    places: dict[str, str] = {}
    region = ""
    for document, _, node in definitions.section(IDENTIFIERS_SECTION.name) if definitions is not None else ():
        for name, (key, value) in document.mapping(node, "`identifiers`").items():
            if not document.once(key, f"`identifiers`: {name!r}", places):
                continue
            if name not in {*_LISTS, _REGION_KEY} and not is_kind(name):
                document.fail(key, f"`identifiers`: {name!r} is not an identifier kind; write {KIND_FORM}")
                continue
            try:
                part = Plain(document, f"`identifiers`, {name!r}", name, key).part(value)
                if name == _REGION_KEY:
                    region = _REGION.read(part)
                elif name in _LISTS:
                    lists[name] += _LISTS[name].read(part)
                else:
                    known = kinds.get(name, IdentifierKind(name))
                    kinds[name] = struct(IdentifierKind, known, ["name"]).read(part)
            except Noted:
                continue
    not_junk = frozenset(lists["not_junk"])
    junk = (JUNK - not_junk) | {text.casefold() for text in lists["junk"]}
    draft = IdentityRules(kinds, junk, not_junk=not_junk, phone_region=region)
    normalised = frozenset(n for i in lists["blocked"] if (n := draft.normalise(i)) is not None)
    return dataclasses.replace(draft, blocked=normalised)
