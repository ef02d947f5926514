"""The kinds of identifiers that ship, what counts as junk, and how users declare their own."""

from __future__ import annotations

import dataclasses
from typing import Any

import yaml

from threadline.capabilities.definitions import Definitions, Document
from threadline.kernel.event import Identifier
from threadline.kernel.identity import FORMS, KIND_FORM, IdentifierKind, IdentityRules, is_kind
from threadline.kernel.limits import THREADS_PER_PERSON_MAX

KINDS = (
    IdentifierKind("user_id", priority=0, limit=1),
    IdentifierKind("email", priority=20, normalise="email"),
    IdentifierKind("phone", priority=30, normalise="phone"),
    IdentifierKind("whatsapp", priority=31, normalise="phone"),
    IdentifierKind("external_id", priority=50),
    IdentifierKind("anonymous_id", priority=90),
    # Strangers share one, and anybody can name anybody's.
    IdentifierKind("ip_address", priority=100, joins=False),
)

JUNK = frozenset(
    {
        "null", "undefined", "none", "nil", "nan", "anonymous", "guest", "0", "-1", "[object object]", "true", "false",
        "unknown", "n/a", "na", "not_authenticated", "distinct_id", "id", "email", "test@example.com", "[]", "{}",
    }
)  # fmt: skip
"""Case-folded values that broken clients send for "nobody". Each of them would join strangers into one person."""

PRIORITY_MAX = 1_000

_OPTIONS = ("priority", "limit", "normalise", "identifying", "joins", "shared")


def rules(definitions: Definitions | None = None) -> IdentityRules:
    """Identity rules: what ships, changed by the section ``identifiers``. Problems are noted there, not raised."""
    kinds = {kind.name: kind for kind in KINDS}
    junk, blocked = set(JUNK), list[Identifier]()
    places: dict[str, str] = {}
    for document, _, node in definitions.section("identifiers") if definitions is not None else ():
        for name, (key, value) in document.mapping(node, "`identifiers`").items():
            if not document.once(key, f"`identifiers`: {name!r}", places):
                continue
            if name == "junk":
                junk |= {text.casefold() for _, text in _texts(document, value, name)}
            elif name == "blocked":
                blocked += _blocked(document, value)
            elif is_kind(name):
                kinds[name] = _kind(document, value, kinds.get(name, IdentifierKind(name)))
            else:
                document.fail(key, f"`identifiers`: {name!r} is not an identifier kind; write {KIND_FORM}")
    draft = IdentityRules(kinds, frozenset(junk))
    normalised = frozenset(n for i in blocked if (n := draft.normalise(i)) is not None)
    return dataclasses.replace(draft, blocked=normalised)


def _texts(document: Document, node: yaml.Node, name: str) -> list[tuple[yaml.Node, str]]:
    """The entries of a list, each as it is written: YAML would read some junk as null or as a number."""
    if not isinstance(node, yaml.SequenceNode):
        document.fail(node, f"`identifiers`: {name!r} must be a list, such as `{name}: [...]`")
        return []
    found = []
    for each in node.value:
        text = each.value.strip() if isinstance(each, yaml.ScalarNode) else ""
        if text:
            found.append((each, text))
        else:
            document.fail(each, f"`identifiers`: the entries of {name!r} must be text")
    return found


def _blocked(document: Document, node: yaml.Node) -> list[Identifier]:
    found = []
    for each, text in _texts(document, node, "blocked"):
        kind, _, value = text.partition(":")
        if value and is_kind(kind):
            found.append(Identifier(kind, value))
        else:
            document.fail(each, f"`identifiers`: blocked {text!r} must be kind:value, such as email:info@example.com")
    return found


def _kind(document: Document, node: yaml.Node, known: IdentifierKind) -> IdentifierKind:
    what = f"`identifiers`, kind {known.name!r}"
    keys = document.mapping(node, what)
    document.known(keys, _OPTIONS, what)
    values = {name: _option(document, name, keys[name][1], what) for name in _OPTIONS if name in keys}
    return dataclasses.replace(known, **{name: value for name, value in values.items() if value is not None})


def _option(document: Document, name: str, node: yaml.Node, what: str) -> Any:
    value = document.literal(node)
    match name:
        case "priority":
            fits, wanted = type(value) is int and 0 <= value <= PRIORITY_MAX, f"a whole number, 0 to {PRIORITY_MAX}"
        case "limit":
            fits = type(value) is int and 1 <= value <= THREADS_PER_PERSON_MAX
            wanted = f"a whole number, 1 to {THREADS_PER_PERSON_MAX}"
        case "normalise":
            fits, wanted = isinstance(value, str) and value in FORMS, " or ".join(FORMS)
        case _:
            fits, wanted = type(value) is bool, "true or false"
    if fits:
        return value
    document.fail(node, f"{what}: `{name}` must be {wanted}")
    return None
