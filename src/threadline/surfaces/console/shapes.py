"""What can be written in a definition, for a form: the JSON Schema of its declaration as a tree of shapes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from threadline.capabilities.foundation.conditions.forms import CONDITION, WHERE
from threadline.capabilities.foundation.definitions.declaring import DURATION_PATTERN, LINES, NAMES
from threadline.kernel.section import Section
from threadline.surfaces.console.formats import label

Schema = Mapping[str, Any]
Kind = Literal[
    "text",
    "lines",
    "number",
    "loose",
    "switch",
    "choice",
    "choices",
    "duration",
    "date",
    "scalar",
    "list",
    "mapping",
    "group",
    "ways",
    "fixed",
    "condition",
    "where",
    "yaml",
]
"""``loose``: a text or a number; ``scalar``: a text, a number or a yes or no; ``choices``: several of them; ``ways``:
one of several shapes; ``fixed``: one value and no other; ``yaml``: no fields can say it."""
VALUE = "value"
"""The field of a definition that is no mapping with keys of its own."""
DEPTH_MAX = 4
"""How far groups with fields of their own stand inside each other."""
TOO_DEEP, RECURSIVE, UNDECLARED = (
    "it has too much inside of it for fields",
    "it may have others like itself inside of it",
    "anything may stand in it",
)
_DATE = r"^\d{4}-\d\d-\d\d$"


class Shape(NamedTuple):
    """What can be written in one part of a definition."""

    kind: Kind
    title: str = ""
    help: str = ""
    is_required: bool = False
    default: Any = None
    """What holds where nothing is written; None: nothing that has a value."""
    example: str = ""
    names: str = ""
    """The kind of what it is the name of, whose names are suggested."""
    choices: tuple[Any, ...] = ()
    """Of a duration, words that may stand for one."""
    value: Any = None
    """Of what is fixed."""
    texts: Mapping[str, str] = {}
    """Choice -> what it means, of those that do not say it."""
    is_whole: bool = False
    fields: Mapping[str, Shape] = {}
    needs_one: tuple[str, ...] = ()
    """Fields of which exactly one is filled in."""
    by: str = ""
    """The field that decides which others there are."""
    variants: Mapping[str, Mapping[str, Shape]] = {}
    item: Shape | None = None
    key: Shape | None = None
    is_alone: bool = False
    """Whether the only item of a list is written without the list."""
    ways: tuple[Shape, ...] = ()
    why: str = ""
    """Why no fields can say it."""
    is_bare: bool = False
    """Whether its only field, `VALUE`, is all of the definition, which then has no keys."""

    def fields_for(self, value: str) -> Mapping[str, Shape]:
        """The fields of a group, by what the deciding one is filled in with."""
        return {**self.fields, **self.variants.get(value, {})}

    @property
    def names_known(self) -> frozenset[str]:
        """The names of all fields that there may be."""
        return frozenset(self.fields).union(*self.variants.values())


def shape_of(schema: Schema, defs: Mapping[str, Schema]) -> Shape:
    """The shape of what a schema describes; ``defs`` is what its references lead to."""
    return _shape(schema, defs, (), 0)


def entry_shape(
    sections: Iterable[Section], name: str, as_yaml: Collection[str] = (), by_name: bool = True
) -> Shape | None:
    """The shape of one definition of a section, of which dots lead inside, as in ``consent.topics``; None where there
    is no such section. ``as_yaml``: fields that are YAML however they could be filled in; ``by_name``: whether a
    mapping without keys of its own holds definitions by their names."""
    declared = list(sections)
    top, *inside = name.split(".")
    section = next((section for section in declared if section.name == top), None)
    if section is None:
        return None
    schema: Schema = section.schema
    for step in inside:
        schema = schema["properties"][step]
    shape = shape_of(schema, {name: inner for section in declared for name, inner in section.defs.items()})
    if by_name and shape.kind == "mapping" and shape.item is not None:
        shape = shape.item
    shape = next((way for way in shape.ways if way.kind == "group"), shape)
    if shape.kind != "group":
        field = shape._replace(title=shape.title or label(name.rpartition(".")[2]), is_required=True)
        return Shape("group", fields={VALUE: field}, is_bare=True)
    aside = {key: field._replace(kind="yaml", why=TOO_DEEP) for key, field in shape.fields.items() if key in as_yaml}
    return shape._replace(fields={**shape.fields, **aside})


def with_fields(shape: Shape, names: Iterable[str], needed: str) -> Shape:
    """The shape of a group with these of its fields alone, of which one has to be filled in; empty: as it says."""
    fields = {name: shape.fields[name] for name in names}
    if needed in fields:
        fields[needed] = fields[needed]._replace(is_required=True)
    return shape._replace(fields=fields, needs_one=())


def _shape(schema: Schema | bool, defs: Mapping[str, Schema], trail: tuple[str, ...], depth: int) -> Shape:
    if isinstance(schema, bool):  # such as `true`, of which anything is right
        return _as_yaml(UNDECLARED)
    reference = str(schema.get("$ref", ""))
    if reference in (CONDITION["$ref"], WHERE["$ref"]):
        return _described(Shape("condition" if reference == CONDITION["$ref"] else "where"), schema)
    if reference:
        name = reference.rpartition("/")[2]
        if name in trail:
            return _described(Shape("yaml", why=RECURSIVE), schema)
        inner = {key: value for key, value in schema.items() if key != "$ref"}
        return _shape({**defs[name], **inner}, defs, (*trail, name), depth)
    alternatives = schema.get("oneOf") or schema.get("anyOf") or ()
    if alternatives and "properties" not in schema:
        return _described(_ways([_shape(way, defs, trail, depth) for way in alternatives]), schema)
    return _described(_plain(schema, defs, trail, depth), schema)


def _described(shape: Shape, schema: Schema) -> Shape:
    """The shape with what a schema says of it to people."""
    examples = schema.get("examples") or ("",)
    example = examples[0] if isinstance(examples[0], str) else json.dumps(examples[0])
    return shape._replace(
        title=str(schema.get("title", "")) or shape.title,
        help=str(schema.get("description", "")) or shape.help,
        default=schema.get("default", shape.default),
        example=example or shape.example,
        names=str(schema.get(NAMES, "")) or shape.names,
    )


def _plain(schema: Schema, defs: Mapping[str, Schema], trail: tuple[str, ...], depth: int) -> Shape:
    if "const" in schema:
        return Shape("fixed", value=schema["const"])
    if "enum" in schema:
        return Shape("choice", choices=tuple(schema["enum"]))
    type = schema.get("type")
    if isinstance(type, list):
        if "string" not in type and not {"array", "object"}.isdisjoint(type):  # such as a schema inside of a schema
            return _as_yaml(UNDECLARED)
        return Shape("loose" if set(type) == {"number", "string"} else "scalar")
    if type == "null":
        return Shape("fixed", value=None)
    if type == "boolean":
        return Shape("switch")
    if type in ("integer", "number"):
        return Shape("number", is_whole=type == "integer")
    if type == "string":
        return _text(schema)
    if type == "array":
        return _list(_shape(schema.get("items", {}), defs, trail, depth + 1))
    if type == "object":
        return _object(schema, defs, trail, depth)
    return Shape("scalar") if type is None and not {"allOf", "if", "not"}.intersection(schema) else _as_yaml(TOO_DEEP)


def _as_yaml(why: str) -> Shape:
    return Shape("yaml", why=why)


def _text(schema: Schema) -> Shape:
    pattern = schema.get("pattern", "")
    if pattern == DURATION_PATTERN:
        return Shape("duration")
    return Shape("date" if pattern == _DATE else "lines" if schema.get(LINES) else "text")


def _list(item: Shape) -> Shape:
    if item.kind == "choice":
        return Shape("choices", choices=item.choices)
    return Shape("list", item=item) if item.kind != "yaml" else item


def _object(schema: Schema, defs: Mapping[str, Schema], trail: tuple[str, ...], depth: int) -> Shape:
    if depth > DEPTH_MAX:
        return _as_yaml(TOO_DEEP)
    if "properties" in schema:
        fields = _fields(schema, defs, trail, depth)
        by, variants, texts = _variants(schema, defs, trail, depth)
        if by:
            fields[by] = fields[by]._replace(texts=texts)
        return Shape("group", fields=fields, needs_one=_needs_one(schema), by=by, variants=variants)
    if isinstance(item := schema.get("additionalProperties"), Mapping):
        key = _shape({"type": "string", **schema.get("propertyNames", {})}, defs, trail, depth)
        inner = _shape(item, defs, trail, depth + 1)
        return Shape("mapping", item=inner, key=key) if inner.kind != "yaml" else inner
    return _as_yaml(UNDECLARED)


def _fields(schema: Schema, defs: Mapping[str, Schema], trail: tuple[str, ...], depth: int) -> dict[str, Shape]:
    required = schema.get("required", ())
    fields = {}
    for name, inner in schema["properties"].items():
        shape = _shape(inner, defs, trail, depth + 1)
        if shape.kind == "fixed" and name not in required:  # one value, or none
            shape = shape._replace(kind="choice", choices=(shape.value,))
        fields[name] = shape._replace(title=shape.title or label(name), is_required=name in required)
    return fields


def _needs_one(schema: Schema) -> tuple[str, ...]:
    """The fields of which a schema wants exactly one."""
    alternatives: Sequence[Schema] = schema.get("oneOf", ())
    names = [way["required"][0] for way in alternatives if len(way.get("required", ())) == 1]
    return tuple(names) if len(names) == len(alternatives) else ()


def _variants(
    schema: Schema, defs: Mapping[str, Schema], trail: tuple[str, ...], depth: int
) -> tuple[str, dict[str, dict[str, Shape]], dict[str, str]]:
    """The field that decides which others there are, these by its value, and what each value means; nothing where none
    does."""
    by, variants, texts = "", dict[str, dict[str, Shape]](), dict[str, str]()
    for branch in schema.get("allOf", ()):
        for name, decided in branch.get("if", {}).get("properties", {}).items():
            by, value = name, str(decided["const"])
            fields = _fields(branch["then"], defs, trail, depth)
            variants[value] = {key: field for key, field in fields.items() if key != name}
            texts[value] = str(branch["then"].get("description", ""))
    return by, variants, texts


def _ways(shapes: list[Shape]) -> Shape:
    """What is written in one of several ways, as simply as it goes."""
    flat = [*_flat(shapes)]
    items = [shape.item for shape in flat if shape.kind == "list"]
    kinds = [shape.kind for shape in flat]
    if len(flat) > 1 and items and kinds[0] == items[0].kind:  # type: ignore[union-attr]
        rest = [shape._replace(is_alone=True) if shape.kind == "list" else shape for shape in flat[1:]]
        return _ways(rest)
    if sorted(kinds) == ["choice", "choices"]:
        return next(shape for shape in flat if shape.kind == "choices")._replace(is_alone=True)
    words = tuple(shape.value for shape in flat if shape.kind == "fixed" and isinstance(shape.value, str))
    rest = [shape for shape in flat if not (shape.kind == "fixed" and isinstance(shape.value, str))]
    if len(rest) == 1 and rest[0].kind in ("duration", "text"):
        return rest[0]._replace(choices=words)
    if {*kinds} == {"text", "number"}:
        return Shape("loose", names=next(shape.names for shape in flat if shape.kind == "text"))
    return flat[0] if len(flat) == 1 else Shape("ways", ways=tuple(flat))


def _flat(shapes: list[Shape]) -> Iterator[Shape]:
    for shape in shapes:
        yield from shape.ways if shape.kind == "ways" else (shape,)
