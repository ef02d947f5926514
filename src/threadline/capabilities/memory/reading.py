"""From one derivation's YAML to a `Derivation`: every mistake is named with its line and what to write instead."""

from __future__ import annotations

import re
from typing import Any

import yaml

from threadline.capabilities.conditions import EVERY_EVENT, Where
from threadline.capabilities.conditions.forms import read_where_at
from threadline.capabilities.definitions import Document, Keys
from threadline.capabilities.memory.definition import (
    AGGREGATES,
    CERTAINTY,
    EVENT_DERIVED,
    PLACED,
    SOURCES,
    TYPES,
    Derivation,
    Feed,
    Field,
)
from threadline.capabilities.memory.events import FACT_RESTORED, FACT_RETRACTED
from threadline.capabilities.memory.paths import Places, Template, Variable, keep, read_places, read_template
from threadline.kernel.errors import InvalidValue
from threadline.kernel.fixed import from_fixed, to_fixed
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import FACT_KEY_LENGTH_MAX, FACTS_OF_DERIVATION_MAX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import parse_duration

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

KEYS = (
    "description", "events", "where", "each", "otherwise", "fact", "source", "value", "says", "confidence",
    "expires_after", "expires_at", "recalled", "derived_from", "most", "version",
)  # fmt: skip
"""What a derivation may say."""

_PATHS = "a path such as `total`, `order.total` or `name|product_name`"


class DerivationReader:
    """Reads the derivations of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def read(self, name: str, node: yaml.Node) -> Derivation | None:
        """Read one derivation; None if it is no mapping. What else is wrong is noted in the document."""
        document, what = self._document, f"memory {name!r}"
        if not isinstance(node, yaml.MappingNode):
            document.fail(node, f"{what} must be a mapping, with `events`, `fact` and `value`")
            return None
        keys = document.mapping(node, what)
        document.known(keys, KEYS, what)
        entries = "each" in keys
        says = "says" in keys
        type, key = self._fact(keys, node, what, entries)
        value, fields = self._value(keys, node, what, entries)
        source = self._source(keys, what)
        feeds = self._feeds(keys, node, what)
        self._constants(keys, feeds, fields, what)
        return Derivation(
            name=name,
            feeds=feeds,
            type=type,
            key=key,
            each=self._places(keys, "each", what),
            otherwise=self._otherwise(keys, what),
            source=source,
            value=value,
            says=says,
            fields=fields,
            confidence=self._confidence(keys, source, what, entries),
            expires_after=self._duration(keys, what),
            expires_at=self._places(keys, "expires_at", what, entries),
            recalled=self._places(keys, "recalled", what, entries, only_says=not says),
            derived_from=self._places(keys, "derived_from", what, entries, only_says=not says),
            most=self._most(keys, what),
            description=document.text_in(keys, "description", what),
            version=document.whole_in(keys, "version", what, 1),
            place=document.place(node),
        )

    # --- which events -------------------------------------------------------------------------------

    def _feeds(self, keys: Keys, node: yaml.Node, what: str) -> tuple[Feed, ...]:
        document = self._document
        if "events" not in keys:
            document.fail(node, f"{what} has no events; add `events: purchase_completed`, or a list")
            return ()
        where = read_where_at(document, keys["where"][1], what) if "where" in keys else EVERY_EVENT
        feeds: dict[str, Feed] = {}
        for name, options in self._types(keys["events"][1], f"{what}: `events`"):
            if name in feeds:
                document.fail(keys["events"][1], f"{what}: {name!r} is listed twice; keep one")
            elif name == "any" or name.startswith(SYSTEM_PREFIX) or name in (FACT_RETRACTED, FACT_RESTORED):
                document.fail(keys["events"][1], f"{what}: {name!r} makes no facts; name types such as form_submitted")
            else:
                feeds[name] = self._feed(name, options, where, what)
        return tuple(feeds[name] for name in sorted(feeds))

    def _types(self, node: yaml.Node, what: str) -> list[tuple[str, yaml.Node | None]]:
        if not isinstance(node, yaml.ScalarNode) and not node.value:
            self._document.fail(node, f"{what} is empty; name at least one event type")
        if isinstance(node, yaml.MappingNode):
            named = self._document.mapping(node, what)
            return [(name, value) for name, (_, value) in named.items()]
        listed = node.value if isinstance(node, yaml.SequenceNode) else [node]
        return [(name, None) for each in listed if (name := self._document.text(each, what))]

    def _feed(self, name: str, options: yaml.Node | None, where: Where, what: str) -> Feed:
        if options is None or self._document.literal(options) is None:
            return Feed(name, where)
        inner = f"{what}, event {name!r}"
        keys = self._document.mapping(options, inner)
        self._document.known(keys, ("where", "set"), inner)
        own = read_where_at(self._document, keys["where"][1], inner) if "where" in keys else EVERY_EVENT
        constants: dict[str, Any] = {}
        for field, (_, value) in (
            self._document.mapping(keys["set"][1], f"{inner}: `set`").items() if "set" in keys else ()
        ):
            constants[field] = self._document.literal(value)
            if keep(constants[field]) is None:
                self._document.fail(value, f"{inner}: `set` takes a text, a number, true or false for each field")
        return Feed(name, Where((*where.parts, *own.parts)), tuple(sorted(constants.items())))

    def _constants(self, keys: Keys, feeds: tuple[Feed, ...], fields: tuple[Field, ...], what: str) -> None:
        """Say which constants have no place in the value, or the place of something else."""
        constants = sorted({name for feed in feeds for name, _ in feed.constants})
        if constants and not fields and ("says" in keys or "value" in keys):
            text = "`set` puts fields into a value that is a mapping; this value is one thing"
            self._document.fail(keys["events"][0], f"{what}: {text}")
            return
        for name in sorted({field.name for field in fields} & set(constants)):
            text = f"field {name!r} is read from events and set as well; keep one, or name them differently"
            self._document.fail(keys["events"][0], f"{what}: {text}")
        names = {*constants, *(field.name for field in fields)}
        for field in fields:
            told = f"{field.name}_by_currency"
            if field.aggregate == "sum" and field.currency is not None and told in names:
                text = f"field {told!r} is what the sum {field.name!r} is told as per currency; name it differently"
                self._document.fail(keys.get("value", keys["events"])[0], f"{what}: {text}")

    # --- which facts --------------------------------------------------------------------------------

    def _fact(self, keys: Keys, node: yaml.Node, what: str, entries: bool) -> tuple[Template, Template]:
        example = "write it like `fact: preference/colour` or `fact: purchase/product:{product_id}`"
        if "fact" not in keys:
            self._document.fail(node, f"{what} makes no fact; {example}")
            return ("fact",), ("-",)
        text = self._document.text(keys["fact"][1], f"{what}: `fact`")
        type_text, slash, key_text = text.partition("/")
        type, key = read_template(type_text, entries), read_template(key_text, entries)
        if not slash or type is None or key is None:
            self._document.fail(keys["fact"][1], f"{what}: {text!r} is not a fact; {example}")
            return ("fact",), ("-",)
        fixed = sum(len(part) for part in key if isinstance(part, str))
        if fixed > FACT_KEY_LENGTH_MAX - (key != (key_text,)):
            self._document.fail(keys["fact"][1], f"{what}: a key has at most {FACT_KEY_LENGTH_MAX} characters")
        elif key_text != key_text.strip():
            self._document.fail(keys["fact"][1], f"{what}: a key must not begin or end with a blank; {example}")
        if type != (type_text,):
            if len(type) > 1 or not isinstance(type[0], Variable):
                self._document.fail(keys["fact"][1], f"{what}: a type is a word or one variable; {example}")
        elif type_text not in TYPES:
            self._document.fail(keys["fact"][1], f"{what}: unknown type {type_text!r}; {suggestion(type_text, TYPES)}")
        if isinstance(type[0], Variable) and key == (key_text,):
            self._document.fail(
                keys["fact"][1], f"{what}: a type that varies needs a key that does, e.g. {{type}}/{{key}}"
            )
        if entries and key == (key_text,):
            self._document.fail(
                keys["fact"][1], f"{what}: entries of `each` need a key that varies, e.g. {key_text}:{{id}}"
            )
        return type, key

    def _otherwise(self, keys: Keys, what: str) -> tuple[tuple[str, Places], ...]:
        if "otherwise" not in keys:
            return ()
        if "each" not in keys:
            self._document.fail(keys["otherwise"][0], f"{what}: `otherwise` goes with `each` only; remove it")
        inner = f"{what}: `otherwise`"
        named = self._document.mapping(keys["otherwise"][1], inner)
        return tuple((name, self._path(value, f"{inner}, {name!r}")) for name, (_, value) in sorted(named.items()))

    # --- which value --------------------------------------------------------------------------------

    def _value(self, keys: Keys, node: yaml.Node, what: str, entries: bool) -> tuple[Places | None, tuple[Field, ...]]:
        given = [key for key in ("value", "says") if key in keys]
        if len(given) != 1:
            text = "has both `value` and `says`; keep one" if given else "has no value; add `value: payment_method`"
            self._document.fail(node, f"{what} {text}")
            return None, ()
        value = keys[given[0]][1]
        if given == ["says"] or not isinstance(value, yaml.MappingNode):
            return self._path(value, f"{what}: `{given[0]}`", entries), ()
        named = self._document.mapping(value, f"{what}: `value`")
        fields = [self._field(name, each, f"{what}, field {name!r}", entries) for name, (_, each) in named.items()]
        if not fields:
            self._document.fail(value, f"{what}: `value` is empty; name a path, or fields with a path each")
        return None, tuple(sorted(fields, key=lambda field: field.name))

    def _field(self, name: str, node: yaml.Node, what: str, entries: bool) -> Field:
        document = self._document
        if not isinstance(node, yaml.MappingNode):
            return Field(name, "last", self._path(node, what, entries))
        keys = document.mapping(node, what)
        document.known(keys, ("aggregate", "of", "times", "currency"), what)
        aggregate = document.text_in(keys, "aggregate", what, "last")
        if aggregate not in AGGREGATES:
            document.fail(
                keys["aggregate"][1], f"{what}: unknown aggregate {aggregate!r}; {suggestion(aggregate, AGGREGATES)}"
            )
            return Field(name)
        for key in ("of", "times", "currency"):
            if key in keys and (aggregate not in PLACED if key == "of" else aggregate != "sum"):
                document.fail(keys[key][0], f"{what}: {aggregate!r} takes no `{key}`; remove it")
        if aggregate in PLACED and "of" not in keys:
            document.fail(node, f"{what}: {aggregate!r} needs the path of a value; add `of: total`")
            return Field(name)
        of, times, currency = (self._places(keys, key, what, entries) for key in ("of", "times", "currency"))
        return Field(name, aggregate, of, times, currency)

    # --- how sure, how long, how many ---------------------------------------------------------------

    def _source(self, keys: Keys, what: str) -> str:
        if "source" not in keys:
            return EVENT_DERIVED
        source = self._document.text(keys["source"][1], f"{what}: `source`")
        if source in SOURCES:
            return source
        self._document.fail(keys["source"][1], f"{what}: unknown source {source!r}; {suggestion(source, SOURCES)}")
        return EVENT_DERIVED

    def _confidence(self, keys: Keys, source: str, what: str, entries: bool) -> int | Places | None:
        if "confidence" not in keys:
            return None
        node = keys["confidence"][1]
        value = self._document.literal(node)
        if type(value) is str:
            return self._path(node, f"{what}: `confidence`", entries)
        units, most = to_fixed(value), CERTAINTY[source][1]
        if units is None or not 0 < units <= most:
            text = f"`confidence` is a path or a number above 0, at most {from_fixed(most)} for {source}"
            self._document.fail(node, f"{what}: {text}")
            return None
        return units

    def _duration(self, keys: Keys, what: str) -> int | None:
        if "expires_after" not in keys:
            return None
        try:
            return parse_duration(self._document.text(keys["expires_after"][1], f"{what}: `expires_after`"))
        except InvalidValue as error:
            self._document.fail(keys["expires_after"][1], f"{what}: `expires_after`: {error}")
            return None

    def _most(self, keys: Keys, what: str) -> int:
        most = self._document.whole_in(keys, "most", what, 100)
        if most > FACTS_OF_DERIVATION_MAX:
            self._document.fail(keys["most"][1], f"{what}: `most` is at most {FACTS_OF_DERIVATION_MAX}")
        return most

    # --- paths --------------------------------------------------------------------------------------

    def _places(self, keys: Keys, key: str, what: str, entries: bool = False, only_says: bool = False) -> Places | None:
        if key not in keys:
            return None
        if only_says:
            self._document.fail(keys[key][0], f"{what}: `{key}` goes with `says` only; remove it")
        return self._path(keys[key][1], f"{what}: `{key}`", entries)

    def _path(self, node: yaml.Node, what: str, entries: bool = False) -> Places:
        text = self._document.literal(node)
        places = read_places(text, entries) if isinstance(text, str) else None
        if places is None:
            self._document.fail(node, f"{what} must be {_PATHS}")
            return Places((("-",),))
        return places
