"""What of an answer is personal: declared beside its fields, for surfaces whose callers may not see it.

A field whose type can hold text says what it is with one of the values below:

    name: Annotated[str, Meta(description="What to call them."), PERSONAL]
    properties: Annotated[dict[str, Any], free(type_by="type")]

A declaration holds for everything in the field. `NAMES` need none. What is not declared is masked, and fails a law.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import unquote

from msgspec import Meta

_KEY = "disclosure"


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What may be shown of a field to a caller who may not see personal data."""

    shows: Literal["everything", "nothing", "values", "free", "identifiers", "sentence"]
    names: frozenset[str] = frozenset()
    """Of free data: the names of what is shown besides."""
    values: frozenset[str] = frozenset()
    """Words of ours that are shown, whatever else the field holds."""
    named_by: str = ""
    """The field beside it that says of what it is a value."""
    asked_by: str = ""
    """The parameter of the call that says of what it is a value; where that is empty everything is shown."""
    type: str = ""
    """Of properties: the type of their event."""
    type_by: str = ""
    """Of properties: the field beside them with the type of their event, or the parameter of the call."""


def _meta(disclosure: Disclosure) -> Meta:
    return Meta(extra={_KEY: disclosure})


PERSONAL = _meta(Disclosure("nothing"))
"""It names or describes a person, or somebody wrote it to or about one."""
NOT_PERSONAL = _meta(Disclosure("everything"))
"""It is ours or an operator's: an id, an instant, a definition, a setting. Only what has the form of an address, a
phone number or an IP address is masked in it, as everywhere."""
IDENTIFIERS = _meta(Disclosure("identifiers"))
"""``kind:value``, one or many: shown where the kind is not declared personal."""
IDENTIFIER_VALUE = _meta(Disclosure("identifiers", named_by="kind"))
"""The value of an identifier whose kind is the field beside it."""
SENTENCE = _meta(Disclosure("sentence"))
"""Words of ours that may quote what somebody sent: what stands in quotation marks is masked."""


def words(*values: str) -> Meta:
    """Words of ours, and what somebody else may have put in their place: that is masked."""
    return _meta(Disclosure("values", values=frozenset(values)))


def free(
    *names: str, values: Sequence[str] = (), named_by: str = "", asked_by: str = "", type: str = "", type_by: str = ""
) -> Meta:
    """Data that others have sent, or that was computed of it: shown by the rule for properties, see `Shown`."""
    return _meta(Disclosure("free", frozenset(names), frozenset(values), named_by, asked_by, type, type_by))


FREE = free()

C = TypeVar("C", bound=type)
_BY_DEFAULT = "_is_not_personal"


def not_personal(struct: C) -> C:
    """Declare the fields of a struct that declare nothing themselves `NOT_PERSONAL`; a decorator. It does not reach
    into structs within, nor to fields that a subclass adds."""
    setattr(struct, _BY_DEFAULT, struct)
    return struct


def by_default(struct: type, field: str) -> Disclosure | None:
    """What a field of a struct is that declares nothing itself and has no struct in it; None: nothing says so."""
    defines = next(owner for owner in struct.__mro__ if field in vars(owner).get("__annotations__", ()))
    is_ours = field in NAMES or vars(defines).get(_BY_DEFAULT) is defines
    return Disclosure("everything") if is_ours else None


NAMES = frozenset(
    {
        "action", "application", "arm", "as_of", "bound", "by", "cause", "code", "created_at", "created_by",
        "credential", "decision", "decision_id", "description", "effect", "entered_at", "event", "event_id", "events",
        "feature", "features", "fingerprint", "hash", "id", "job", "journey", "key", "kind", "label", "labels", "marks",
        "mode", "next", "notes", "object_id", "object_ref", "operation", "operator", "outcome", "period", "person",
        "policy", "queue", "rule", "rule_set", "rule_sets", "rules", "run", "saved_by", "schema_version", "scope",
        "segment", "segments", "sender", "since", "source_type", "sql", "state", "status", "step", "surface", "tags",
        "template", "thread", "timezone", "title", "topic", "type", "types", "unit", "until", "version",
        "week_starts_on", "workspace", "written_by", "zone",
    }
)  # fmt: skip
"""Fields that mean one thing in every answer, and nothing personal: ids, keys, instants, tags, names of definitions and
of those who work here."""


def declared(hint: Any) -> Disclosure | None:
    """What the annotations of a field say of it; the outermost counts."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        for meta in reversed(metas):
            if isinstance(meta, Meta) and meta.extra is not None and _KEY in meta.extra:
                disclosure: Disclosure = meta.extra[_KEY]
                return disclosure
        return declared(inner)
    if get_origin(hint) in (None, Literal, dict, list, tuple):
        return None
    return next(filter(None, map(declared, get_args(hint))), None)


PERSONAL_NAMES = frozenset(
    {
        "email", "emailaddress", "phone", "phonenumber", "mobile", "telephone", "whatsapp", "firstname", "lastname",
        "fullname", "givenname", "familyname", "middlename", "surname", "birthday", "birthdate", "dateofbirth",
        "street", "address", "addresses", "postalcode", "postcode", "zip", "zipcode", "ip", "ipaddress", "latitude",
        "longitude", "avatar", "ssn", "passport", "iban", "recipient", "recipients", "html", "raw", "name", "username",
        "nickname", "city", "location", "message", "messagetext", "text", "body", "comment", "note", "notes", "subject",
        "useragent", "gender", "age",
    }
)  # fmt: skip
"""Properties of these names are masked whatever they hold, numbers too. Letters and digits only."""
SHOWN_NAMES = frozenset(
    {
        "affiliation", "amount", "brand", "campaign", "cartid", "category", "categories", "channel", "checkoutid",
        "coupon", "currency", "discount", "language", "library", "listid", "locale", "medium", "orderid", "os", "plan",
        "platform", "price", "productid", "promotionid", "quantity", "revenue", "shipping", "sku", "subtotal", "tax",
        "timezone", "total", "variant",
    }
)  # fmt: skip
"""Properties of these names are shown though they are text: what a shop sells, and with what it was called."""
_SHOWN_WITHIN = {"campaign": frozenset({"content", "id", "medium", "name", "source", "term"})}
"""What is shown besides in a property of this name: what those who made a link have written into it."""
DECLARED_IN_SCHEMA = "x-personal"
"""The keyword of an event schema that says it of a property: true, or false."""

_OPAQUE = re.compile(r"[0-9a-f]{32}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)|-?\d{1,6}|-?\d{1,15}\.\d+")
"""What tells nothing by itself: ids of ours, instants, decimals, and whole numbers too short for a phone's."""


class Shown:
    """Which values of free data are shown.

    Masked are properties called by `PERSONAL_NAMES`, and all other text. Shown are numbers and booleans, ids of ours,
    instants, decimals, text under `SHOWN_NAMES`, what a capability declares of its own events, and what the schema of
    the event's type lists (`enum`, `const`) or declares with `DECLARED_IN_SCHEMA`, which goes before all else.
    """

    def __init__(self, own: Mapping[str, Sequence[str]], schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._own = {type: frozenset(names) for type, names in own.items()}
        self._schemas = {type: _reduced(schema, schema) for type, schema in schemas.items()}
        self._personal = frozenset(_declared_personal(self._schemas.values()))

    def schema(self, type: str) -> Mapping[str, Any]:
        """The schema of a type's properties; empty without one."""
        return self._schemas.get(type, {})

    def of_type(self, type: str) -> frozenset[str]:
        """What is shown of a type's properties besides."""
        return self._own.get(type, frozenset())

    def name(self, name: str, schema: Mapping[str, Any], besides: frozenset[str]) -> bool | None:
        """Whether what a name stands for is shown, whatever it is; None: that depends on the value.

        ``schema`` is that of the value.
        """
        is_personal = schema.get(DECLARED_IN_SCHEMA)
        if isinstance(is_personal, bool):
            return not is_personal
        if name in besides:
            return True
        plain = plain_name(name)
        if plain in PERSONAL_NAMES or plain in self._personal:
            return False
        return True if plain in SHOWN_NAMES else None

    def path(self, path: str, type: str = "", besides: frozenset[str] = frozenset()) -> bool | None:
        """The same for a path as conditions and break-downs have it, such as ``event.properties.plan``."""
        steps = path.split(".")
        if len(steps) == 2 and steps[0] == "event" and steps[1] in _OF_EVENTS:
            return True
        while len(steps) > 1 and steps[0] in _ROOTS:
            steps = steps[1:]
        schema = self.schema(type)
        for step in steps:
            schema = inner_schema(schema, step)
        besides |= self.of_type(type)
        return self.name(steps[-1], schema, besides | shown_within(steps[-2]) if len(steps) > 1 else besides)


_OF_EVENTS = frozenset({"id", "key", "occurred_at", "recorded_at", "source", "source_type", "type"})
"""What every event has besides its properties, none of it personal."""
_ROOTS = frozenset({"event", "properties", "context", "traits", "profile", "features"})


def shown_within(name: str) -> frozenset[str]:
    """What is shown besides in a property of this name."""
    return _SHOWN_WITHIN.get(plain_name(name), frozenset())


def shows_value(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value under a name that says nothing is shown."""
    if not isinstance(value, str):
        return True
    return value == "" or bool(_OPAQUE.fullmatch(value)) or value in schema.get("enum", ())


def inner_schema(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The schema of a member; of the elements of a list, under the name of the list. Empty: it says nothing of it."""
    inner: Mapping[str, Any] = schema.get("properties", {}).get(name, {})
    return inner


def _reduced(schema: Any, whole: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema says of what is shown: its members with their own, listed values, `DECLARED_IN_SCHEMA`.

    Elements of a list are as the list is, and what a schema is made of is as the schema is. References lead to parts of
    the ``whole``, and never back: schemas are checked when they are declared.
    """
    made: dict[str, Any] = {}
    if not isinstance(schema, Mapping):
        return made
    members = schema.get("properties")
    if isinstance(members, Mapping):
        made["properties"] = {name: _reduced(inner, whole) for name, inner in members.items()}
    made["enum"] = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    if isinstance(schema.get(DECLARED_IN_SCHEMA), bool):
        made[DECLARED_IN_SCHEMA] = schema[DECLARED_IN_SCHEMA]
    parts = [part for keyword in ("allOf", "anyOf", "oneOf", "prefixItems") for part in schema.get(keyword, ())]
    parts += [schema[keyword] for keyword in ("items", "if", "then", "else") if keyword in schema]
    if "$ref" in schema:
        parts.append(_part_at(whole, schema["$ref"]))
    for part in parts:
        made = _together(made, _reduced(part, whole))
    return made


def _part_at(whole: Any, reference: str) -> Any:
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        whole = whole[int(name)] if isinstance(whole, list) else whole[name]
    return whole


def _together(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """What two reduced schemas of one value say: personal if one of them says so."""
    made = {**first, "enum": [*first.get("enum", ()), *second.get("enum", ())]}
    if DECLARED_IN_SCHEMA in second:
        made[DECLARED_IN_SCHEMA] = second[DECLARED_IN_SCHEMA] or first.get(DECLARED_IN_SCHEMA, False)
    if "properties" in second:
        members = first.get("properties", {})
        made["properties"] = members | {
            name: _together(members.get(name, {}), inner) for name, inner in second["properties"].items()
        }
    return made


def plain_name(name: str) -> str:
    """Its letters and digits, without case."""
    return "".join(filter(str.isalnum, name)).lower()


def _declared_personal(schemas: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The names of the properties that some schema declares personal."""
    for schema in schemas:
        for name, inner in schema.get("properties", {}).items():
            if inner.get(DECLARED_IN_SCHEMA) is True:
                yield plain_name(name)
            yield from _declared_personal([inner])
