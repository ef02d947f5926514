"""One declaration of what users may write: from it come the value, its problems with their places, and JSON Schema.

A definition is a `msgspec.Struct`. The type of a field gives how it is written, `Meta` its description and bounds; what
is written in another way than its type has a `Form`, such as a duration. The method ``problems`` checks fields that
depend on each other. Fields that are `Given` stand in no file: the name and the place of a definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions.document import ANY_TYPE, BY_HAND, twice
from threadline.capabilities.foundation.definitions.files import Definitions
from threadline.capabilities.foundation.definitions.joining import joined
from threadline.capabilities.foundation.definitions.plain import (
    DEPTH_MAX,
    NODES_MAX,
    Json,
    Noted,
    Part,
    Place,
    Plain,
    called,
)
from threadline.kernel.errors import InvalidValue
from threadline.kernel.names import EVENT_TYPE, NAME, PATH_NAME, PATH_SPELLING, SPELLING, Mention, NameKind, Names
from threadline.kernel.section import Section
from threadline.kernel.suggestion import nearest, suggestion
from threadline.kernel.time import format_duration, parse_duration

S = TypeVar("S")
T = TypeVar("T")

_GIVEN, _NOT_WRITTEN = object(), object()
NotWritten = Annotated[T, _NOT_WRITTEN]
"""A field that no file holds and that something else sets."""
Given = Annotated[str, _GIVEN]
"""A field that no file holds: ``place``, the file and line; ``path_place``, of the field ``path``; else the name."""

Problems = Iterator[tuple[str | Place, str]]
"""What ``problems(written)`` of a `Struct` gives: each with its key, or place, inside the definition."""

DURATION_PATTERN = "^([0-9]{1,9}(us|ms|s|m|h|d|w|y))+$"
DECIMAL = {"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": r"^[+]?[0-9._]+([eE][+-]?[0-9]+)?$"}
"""JSON Schema of a decimal above 0, written as a number or as a text."""
NAMES, LINES = "x-names", "x-lines"
"""Keywords of our own in schemas: of which `NameKind` a text is the name, and that a text has several lines."""
NUMBER_FIELD = "number"
"""Stands in `NAMES` for paths that lead to a number of a person, such as ``features.monetary_total``."""


@dataclass(frozen=True, eq=False)
class Form(Generic[T]):
    """How a value is written."""

    kinds: tuple[type, ...]
    """Types of the plain values that it may have."""
    wanted: str
    """What must be written, for problems: ``must be …``."""
    make: Callable[[Part], T]
    """The value. Raises `InvalidValue` with what is wrong, or `Noted`."""
    schema: Mapping[str, Any]
    defs: Mapping[str, Any] = field(default_factory=dict)
    shown: Callable[[Any], Any] = lambda value: value
    """A value as it is written, for the default that an editor shows."""
    quotable: bool = False
    """Whether what YAML takes for a number or a switch may be meant as a text."""

    def read(self, part: Part) -> T:
        """The value of a part. Raises `Noted` where it is none, which then is a problem."""
        try:
            if type(part.value) not in self.kinds:
                cure = "; write it in quotes" if self.quotable and type(part.value) in (int, float, bool) else ""
                raise InvalidValue(f"must be {self.wanted}{cure}")
            return self.make(part)
        except InvalidValue as error:
            part.wrong(str(error))
            raise Noted from None

    def then(self, change: Callable[[T], S], shown: Callable[[S], Any] | None = None) -> Form[S]:
        """The same form, of what ``change`` makes of its values. It may raise `InvalidValue`."""
        own: Form[Any] = self
        return replace(own, make=lambda part: change(self.make(part)), shown=shown or own.shown)


# --- forms of scalars ---------------------------------------------------------------------------


def text(wanted: str = "text", pattern: str = "", least: int = 1, most: int | None = None, **schema: Any) -> Form[str]:
    """A text; ``pattern`` is of the whole."""
    if most is not None and wanted == "text":
        wanted = f"text of {least:,} to {most:,} characters"
    fits = re.compile(pattern).fullmatch

    def make(part: Part) -> str:
        value: str = part.value
        if len(value) < least or (most is not None and len(value) > most) or (pattern and not fits(value)):
            raise InvalidValue(f"must be {wanted}")
        return value

    bounds = {"minLength": least or None, "maxLength": most, "pattern": f"^{pattern}$" if pattern else None}
    return Form((str,), wanted, make, {"type": "string"} | _given(bounds) | schema, quotable=True)


def event_type(most: int | None = None) -> Form[str]:
    """A type of events. The definitions note where it stands, to warn of a type that nobody sends."""
    form = text(most=most)

    def make(part: Part) -> str:
        type = form.make(part)
        if type != ANY_TYPE:
            part.whole.note_free(part.at, EVENT_TYPE, type)
        return type

    return described(replace(form, make=make), **{NAMES: EVENT_TYPE})


def naming(kind: str, form: Form[T], named: Callable[[T], str] = str) -> Form[T]:
    """The same form, of a value that names something of a free `NameKind`, to warn of what nobody has used; ``named``
    gives the name in it, empty: none."""

    def make(part: Part) -> T:
        value = form.make(part)
        if name := named(value):
            part.whole.note_free(part.at, kind, name)
        return value

    return described(replace(form, make=make), **{NAMES: kind})


def name_of(kind: str, plain: re.Pattern[str] = NAME) -> Form[str]:
    """The name of something that is declared elsewhere. The definitions note where it stands, and nothing that is
    declared may lack it."""
    spelling = PATH_SPELLING if plain is PATH_NAME else SPELLING
    form = text(f"the name of a {kind}, of {spelling}", plain.pattern)

    def make(part: Part) -> str:
        name = form.make(part)
        part.whole.note_name(part.at, kind, name)
        return name

    return described(replace(form, make=make), **{NAMES: kind})


def whole(least: int | None = 1, most: int | None = None) -> Form[int]:
    """A whole number."""
    wanted = "a whole number"
    if least is not None:
        wanted += f" of at least {least:,}" if most is None else f" from {least:,} to {most:,}"

    def make(part: Part) -> int:
        value: int = part.value
        if (least is not None and value < least) or (most is not None and value > most):
            raise InvalidValue(f"must be {wanted}")
        return value

    return Form((int,), wanted, make, {"type": "integer"} | _given({"minimum": least, "maximum": most}))


def positive() -> Form[float]:
    """A number above 0."""

    def make(part: Part) -> float:
        if not 0 < part.value < 1e12:
            raise InvalidValue("must be a number above 0")
        return float(part.value)

    return Form((int, float), "a number above 0", make, {"type": "number", "exclusiveMinimum": 0})


def choice(values: Iterable[str]) -> Form[Any]:
    """One of some words."""
    known = tuple(values)

    def make(part: Part) -> str:
        if part.value not in known:
            raise InvalidValue(f"cannot be {part.value!r}; {suggestion(part.value, known)}")
        return str(part.value)

    return Form((str,), " or ".join(known), make, {"enum": list(known)})


def duration(least: int = 1, most: int | None = None, example: str = "30d") -> Form[int]:
    """A duration in microseconds, written such as 12h."""
    bounds = "" if most is None else f" of at most {format_duration(most)}"
    if least > 1 and most is not None:
        bounds = f" from {format_duration(least)} to {format_duration(most)}"
    wanted = f"a duration{bounds}, such as {example}"

    def make(part: Part) -> int:
        try:
            size = parse_duration(part.value)
        except InvalidValue as error:
            raise InvalidValue(f"must be {wanted}: {error}") from None
        if size < least or (most is not None and size > most):
            raise InvalidValue(f"must be {wanted}")
        return size

    return Form((str,), wanted, make, {"type": "string", "pattern": DURATION_PATTERN}, shown=format_duration)


def decimal(most: Decimal, example: str) -> Form[Decimal]:
    """A decimal above 0, exactly as it is written."""
    wanted = f"a decimal above 0 and at most {most:,}, such as {example}"

    def make(part: Part) -> Decimal:
        # The text as it stands: a float would not be the number that was written.
        written = part.written
        try:
            number = Decimal(written)
        except InvalidOperation:
            number = Decimal(0)
        if not number.is_finite() or not 0 < number <= most or len(written) > 20:
            raise InvalidValue(f"must be {wanted}")
        return number

    return Form((int, float, str), wanted, make, {**DECIMAL, "examples": [example]}, shown=str)


def parsed(parse: Callable[[str], T | None], wanted: str, kinds: tuple[type, ...] = (str,), **schema: Any) -> Form[T]:
    """What a text, as it is written, means: ``parse`` gives None, or raises `InvalidValue`, for what means nothing."""

    def make(part: Part) -> T:
        written = part.written
        try:
            value = parse(written)
        except InvalidValue as error:
            raise InvalidValue(f"must be {wanted}: {error}") from None
        if value is None:
            raise InvalidValue(f"must be {wanted}, and {written[:80]!r} is not")
        return value

    return Form(kinds, wanted, make, {"type": "string", "minLength": 1} | schema)


def only(*values: int) -> Form[int]:
    """One of some numbers."""
    wanted = " or ".join(map(str, values))

    def make(part: Part) -> int:
        if part.value not in values:
            raise InvalidValue(f"must be {wanted}")
        return int(part.value)

    return Form((int,), wanted, make, {"enum": list(values)})


def nothing(value: T) -> Form[T]:
    """A null, which means a value."""
    return Form((NoneType,), "nothing", lambda part: value, {"type": "null"})


def shared(name: str, form: Form[T], **schema: Any) -> Form[T]:
    """The same form, whose schema stands once among ``$defs``, under a name."""
    return replace(form, schema={"$ref": f"#/$defs/{name}"}, defs={**form.defs, name: {**form.schema, **schema}})


def described(form: Form[T], **schema: Any) -> Form[T]:
    """The same form, with more said to editors."""
    return replace(form, schema={**form.schema, **schema})


def _false(part: Part) -> Literal[False]:
    if part.value is not False:
        raise InvalidValue("must be a declaration, or false to leave it out")
    return False


FALSE: Form[Literal[False]] = Form((bool,), "false", _false, {"const": False})
"""Leaves something out."""


# --- forms of what holds others -----------------------------------------------------------------


def either(*forms: Form[Any]) -> Form[Any]:
    """A value in one of several forms, which its type tells apart."""
    by_kind = {kind: form for form in reversed(forms) for kind in form.kinds}
    return Form(
        tuple(by_kind),
        " or ".join([", ".join(form.wanted for form in forms[:-1]), forms[-1].wanted]),
        lambda part: by_kind[type(part.value)].read(part),
        {"oneOf": [form.schema for form in forms]},
        {name: schema for form in forms for name, schema in form.defs.items()},
    )


def listed(form: Form[T], least: int = 0, most: int | None = None, wanted: str = "a list") -> Form[tuple[T, ...]]:
    """A list of values of one form."""
    if wanted == "a list" and (least or most is not None):
        wanted = f"a list of at least {least:,}" if most is None else f"a list of {least:,} to {most:,}"

    def make(part: Part) -> tuple[T, ...]:
        count = len(part.value)
        if not least <= count <= (count if most is None else most):
            raise InvalidValue(f"must be {wanted}, and it {f'has {count:,} items' if count else 'is empty'}")
        return tuple(_all(form, [part.inner(index) for index in range(count)]))

    schema = {"type": "array", "items": form.schema} | _given({"minItems": least or None, "maxItems": most})
    return Form((list,), wanted, make, schema, form.defs)


def one_or_many(form: Form[T], least: int = 1, most: int | None = None) -> Form[tuple[T, ...]]:
    """A list, or its only item alone."""
    return either(form.then(lambda value: (value,)), listed(form, least, most))


def by_name(
    form: Form[T], names: Form[str] | None = None, least: int = 0, most: int | None = None
) -> Form[dict[str, T]]:
    """A mapping from names to values of one form."""

    def make(part: Part) -> dict[str, T]:
        if len(part.value) < least:
            raise InvalidValue("is empty; name at least one")
        if most is not None and len(part.value) > most:
            raise InvalidValue(f"holds {len(part.value):,}; at most {most:,} are allowed, remove some")
        if names is not None:
            _all(names, [_Key(part.whole, name, (*part.at, name)) for name in part.value])
        inner = [part.inner(name) for name in part.value]
        return dict(zip(part.value, _all(form, inner), strict=True))

    schema: dict[str, Any] = {"type": "object", "additionalProperties": form.schema}
    if names is not None:
        schema["propertyNames"] = {key: value for key, value in names.schema.items() if key != "type"}
    bounds = _given({"minProperties": least or None, "maxProperties": most})
    return Form((dict,), "a mapping, `key: value` on lines of its own", make, schema | bounds, form.defs)


class _Key(Part):
    """A key, read as a value."""

    __slots__ = ()

    @property
    def written(self) -> str:
        """The key."""
        return str(self.value)

    def wrong(self, text: str, *inside: str | int) -> None:
        """Note what is wrong with the key."""
        what = called(self.whole.what, self.at[:-1])
        self.whole.fail((*self.at, *inside), f"{what}: a key {text}, and {self.value[:80]!r} is not")


def _all(form: Form[T], parts: Iterable[Part]) -> list[T]:
    """Every value, so that every problem is noted. Raises `Noted` if one of them is none."""
    values, failed = [], False
    for part in parts:
        try:
            values.append(form.read(part))
        except Noted:
            failed = True
    if failed:
        raise Noted
    return values


def struct(kind: type[T], over: T | None = None, given: Collection[str] = (), **schema: Any) -> Form[T]:
    """A mapping with the keys that the fields of a `Struct` are called by; ``one_of`` of it names alternatives.

    ``over``: the value whose fields are taken where their keys are absent; ``given``: fields that no file holds.
    """
    infos = _fields(kind)  # type: ignore[arg-type]
    given = {info.name for info in infos if _is_marked(info, _GIVEN)}.union(given)
    unwritten = {info.name for info in infos if _is_marked(info, _NOT_WRITTEN)} | given
    names = {info.encode_name: info.name for info in infos if info.name not in unwritten}
    forms = {info.encode_name: _described(info) for info in infos if info.name not in unwritten}
    places = {"place": ""} | {f"{name}_place": key for key, name in names.items()}
    needed = [info.encode_name for info in infos if info.required and info.encode_name in forms and over is None]
    alternatives: tuple[str, ...] = getattr(kind, "one_of", ())

    def make(part: Part) -> T:
        problem = _wrong_keys(part, forms, needed, alternatives)
        values = {} if over is None else {info.name: getattr(over, info.name) for info in infos}
        values |= {name: part.place(places[name]) if name in places else part.name for name in given}
        for name in part.value:
            if name in forms:
                try:
                    values[names[name]] = forms[name].read(part.inner(name))
                except Noted:
                    problem = True
        if problem:
            raise Noted
        made = kind(**values)
        check(made, part)
        return made

    described = {
        "type": "object",
        "description": (kind.__doc__ or "").strip().split("\n")[0],
        "properties": {name: form.schema for name, form in forms.items()},
        "required": needed or None,
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in alternatives] or None,
    }
    defs = {name: inner for form in forms.values() for name, inner in form.defs.items()}
    return Form((dict,), "a mapping, `key: value` on lines of its own", make, _given(described) | schema, defs)


@cache
def _fields(kind: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a `Struct`. msgspec evaluates all annotations each time that it is asked."""
    return msgspec.structs.fields(kind)


def _is_marked(info: msgspec.structs.FieldInfo, mark: object) -> bool:
    return get_origin(info.type) is Annotated and mark in get_args(info.type)


def _wrong_keys(part: Part, forms: Mapping[str, Form[Any]], needed: list[str], alternatives: tuple[str, ...]) -> bool:
    """Note keys that are unknown, and those that are missing."""
    unknown = [name for name in part.value if name not in forms]
    for name in unknown:
        part.fail(f"unknown key {name!r}; {suggestion(name, forms)}", name)
    # A misspelt key is one problem, not two.
    meant = {nearest(name, forms) for name in unknown}
    missing = [name for name in needed if name not in part.value and name not in meant]
    for name in missing:
        part.wrong(f"needs `{name}`{_hint(forms[name])}")
    chosen = [name for name in alternatives if name in part.value]
    several = bool(alternatives) and len(chosen) != 1
    if several:
        both, names = "has both" if chosen else "needs", [f"`{name}`" for name in chosen or alternatives]
        part.wrong(f"{both} {(' and ' if chosen else ' or ').join(names)}{'; keep one' if chosen else ''}")
    return bool(unknown or missing or several)


def check(made: Any, part: Part) -> None:
    """Note what several fields together are not. Raises `Noted` if there is anything."""
    problems: Callable[[Collection[str]], Problems] = getattr(made, "problems", _no_problems)
    noted = list(problems(part.value))
    for at, problem in noted:
        part.fail(problem, *([at] if at and isinstance(at, str) else at))
    if noted:
        raise Noted


def _no_problems(written: Collection[str]) -> Problems:
    return iter(())


def deferred(kind: type[T]) -> Form[Callable[[T], T | None]]:
    """A mapping that is read later, over a value that the rest decides; None if it is wrong, which is then noted."""

    def make(part: Part) -> Callable[[T], T | None]:
        def over(given: T) -> T | None:
            try:
                return struct(kind, given).read(part)
            except Noted:
                return None

        return over

    form = struct(kind)
    return Form(form.kinds, form.wanted, make, form.schema, form.defs)


def form_of(kind: Any, meta: Meta | None = None) -> Form[Any]:
    """The form of a type."""
    meta = meta or Meta()
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *extras = get_args(kind)
        for extra in extras:
            meta = extra if isinstance(extra, Meta) else meta
        own = next((extra for extra in extras if isinstance(extra, Form)), None)
        return own or form_of(inner, meta)
    if origin in (UnionType, Union):
        forms = [form_of(item, meta) for item in get_args(kind) if item is not NoneType]
        return either(*forms) if len(forms) > 1 else forms[0]
    if origin is Literal:
        return FALSE if get_args(kind) == (False,) else choice(get_args(kind))
    if origin is tuple:
        return listed(form_of(get_args(kind)[0]), meta.min_length or 0, meta.max_length)
    if origin in (dict, Mapping):
        return by_name(form_of(get_args(kind)[1]), None, meta.min_length or 0, meta.max_length)
    if kind is str:
        return text(
            pattern=meta.pattern or "", least=1 if meta.min_length is None else meta.min_length, most=meta.max_length
        )
    if kind is int:
        return whole(meta.ge, meta.le)  # type: ignore[arg-type]
    if kind is bool:
        return Form((bool,), "true or false", lambda part: part.value, {"type": "boolean"})
    return struct(kind)


def _described(info: msgspec.structs.FieldInfo) -> Form[Any]:
    """The form of a field, with what `Meta` and its default say of it."""
    form = form_of(info.type)
    extras = get_args(info.type)[1:] if get_origin(info.type) is Annotated else ()
    more: dict[str, Any] = {}
    for meta in extras:
        if isinstance(meta, Meta):
            more |= _given({"title": meta.title, "description": meta.description, "examples": meta.examples})
    if type(info.default) in (str, int, float) and info.default != "":
        more["default"] = form.shown(info.default)
    elif type(info.default) is bool:
        more["default"] = info.default
    return replace(form, schema={**form.schema, **more}) if more else form


def _hint(form: Form[Any]) -> str:
    description, examples = str(form.schema.get("description", "")), form.schema.get("examples")
    hint = f": {description[:1].lower()}{description[1:].rstrip('.')}" if description else ""
    return f"{hint}, such as {examples[0]}" if examples else hint


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


NAME_FORM = text(f"a name of {SPELLING}", NAME.pattern)
"""A name that is given where it stands."""


# --- sections -----------------------------------------------------------------------------------


@dataclass
class Declarations(Generic[T]):
    """What the files declare in a section by name."""

    values: dict[str, T] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """Name -> file and line, of whatever is declared rightly or wrongly, or left out."""
    left_out: set[str] = field(default_factory=set)
    """What ships and is left out by false."""


@dataclass(frozen=True, eq=False)
class Named(Generic[T]):
    """A section that holds definitions by name."""

    section: str
    what: str
    """What one is called, e.g. ``segment``."""
    form: Form[T]
    description: str
    example: str
    """A good name."""
    most: int | None = None
    names: re.Pattern[str] = NAME
    named: str = ""
    """What names may be, where they are not as `NAME` has them."""
    nodes_max: int = NODES_MAX
    depth_max: int = DEPTH_MAX
    ships: str = ""
    """The package whose ``shipped.yaml`` declares some; false leaves one of them out."""
    permanent: tuple[str, ...] = ()
    """Those that ship and can be neither replaced nor left out."""

    @property
    def declared(self) -> Section:
        """The section with its JSON Schema."""
        ref = self.what.replace(" ", "_")
        entry_schema: dict[str, Any] = {"$ref": f"#/$defs/{ref}"}
        schema = {
            "type": "object",
            "description": self.description,
            "propertyNames": {"pattern": f"^{self.names.pattern}$"} | self._taken,
            "additionalProperties": {"oneOf": [FALSE.schema, entry_schema]} if self.ships else entry_schema,
        }
        return Section(
            self.section, schema | _given({"maxProperties": self.most}), {**self.form.defs, ref: self.form.schema}
        )

    @property
    def kind(self) -> NameKind:
        """The names under it, for whatever names one of them."""
        return NameKind(self.what, self.known, self.names, listed_by=f"{self.section}_list")

    def known(self, definitions: Definitions) -> Collection[str]:
        """What ships and what these definitions declare, rightly or wrongly."""
        read = self.read(definitions)
        return (read.values.keys() | read.places.keys()) - read.left_out

    def read_json(self, name: str, value: Any, where: str, names: Names | None = None) -> T:
        """The definition of plain values, as JSON gives them; ``where`` is what the places of problems begin with.
        ``names``: those that it may name; without them any.

        Raises `InvalidDefinition` with every problem, one a line.
        """
        whole = Json(name, where)
        try:
            if not self.names.fullmatch(name):
                whole.fail((), self._wrong_name(name))
                raise Noted
            made = self.form.read(Part(whole, value))
            for at, kind, other in whole.names if names is not None else ():
                problem = names.unknown(kind, other)  # type: ignore[union-attr]
                if problem:
                    whole.fail(at, problem)
            if whole.is_wrong:
                raise Noted
            return made
        except Noted:
            raise whole.refusal() from None

    def _wrong_name(self, name: str) -> str:
        hint = self.named or f"use {SPELLING}, such as {self.example}"
        return f"{name[:80]!r} is not a valid {self.what} name; {hint}"

    @property
    def _taken(self) -> dict[str, Any]:
        return {"not": {"enum": list(self.permanent)}} if self.permanent else {}

    def read(self, definitions: Definitions) -> Declarations[T]:
        """What ships and what these definitions declare, by name. Problems are noted, not raised."""
        # Conditions of several capabilities name segments: each would read all of them again.
        if self not in definitions.read:
            definitions.read[self] = self._read_once(definitions)
        read = definitions.read[self]
        return Declarations({**read.values}, {**read.places}, {*read.left_out})

    def _read_once(self, definitions: Definitions) -> Declarations[T]:
        shipped, mentions = self._shipped if self.ships else ({}, ())
        for mention in mentions:
            definitions.known_names[mention.kind].add(mention.name)
        declared = Declarations(dict(shipped))
        self._read(definitions, declared, frozenset(shipped))
        if self.most is not None and len(declared.values) > self.most:
            definitions.problems.append(
                f"{len(declared.values):,} {self.what}s are declared, at most {self.most:,} are allowed; remove some"
            )
        declared.values = {name: declared.values[name] for name in sorted(declared.values)}
        return declared

    @cached_property
    def _shipped(self) -> tuple[dict[str, T], Sequence[Mention]]:
        """What ships, and the names of free kinds in it. Read once in a process: every opened store needs it."""
        ours, shipped = Definitions.shipped(self.ships), Declarations[T]()
        self._read(ours, shipped, frozenset())
        ours.refuse()
        return shipped.values, ours.mentions

    def _read(self, definitions: Definitions, declared: Declarations[T], shipped: frozenset[str]) -> None:
        for document, _, node in definitions.section(self.section):
            for name, (key, value) in document.mapping(node, f"`{self.section}`").items():
                what = f"{self.what} {name[:80]!r}"
                if not self.names.fullmatch(name):
                    document.fail(key, self._wrong_name(name))
                    continue
                if (before := declared.places.get(name)) is not None:
                    by_hand = document.name == BY_HAND
                    already = f"{what} is already declared at {before}; keep one"
                    document.fail(key, twice(what, before, self.section, name) if by_hand else already)
                    continue
                declared.places[name] = document.place(key)
                if name in shipped and name in self.permanent:
                    document.fail(key, f"{what} ships and can be neither replaced nor left out; take another name")
                elif self.ships and document.literal(value) is False:
                    if name not in shipped:
                        document.fail(key, f"{what} does not ship and cannot be left out; {suggestion(name, shipped)}")
                    declared.values.pop(name, None)
                    declared.left_out.add(name)
                else:
                    plain = Plain(document, what, name, key, self.nodes_max, self.depth_max)
                    try:
                        declared.values[name] = self.form.read(plain.part(value))
                    except Noted:
                        declared.values.pop(name, None)
                        definitions.failed.add(name)


@dataclass(frozen=True, eq=False)
class Single(Generic[T]):
    """A section that is declared once."""

    section: str
    form: Form[T]
    shapes: frozenset[str] = frozenset()
    """See `Section.shapes`."""

    @property
    def declared(self) -> Section:
        """The section with its JSON Schema."""
        return Section(self.section, self.form.schema, self.form.defs, self.shapes)

    def read(self, definitions: Definitions, otherwise: T, form: Form[T] | None = None) -> T:
        """What it holds, in its form or in another; ``otherwise`` where it is absent or wrong. Problems are noted."""
        sections = definitions.section(self.section)
        if not sections:
            return otherwise
        first, *others = sections
        for other in others:
            first = joined(first, other)
        document, key, node = first
        try:
            return (form or self.form).read(Plain(document, f"`{self.section}`", "", key).part(node))
        except Noted:
            return otherwise
