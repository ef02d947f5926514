"""A method for each operation, made when it is first looked up: those of a group by its name, the others beside them.

What type checkers and editors know of them is in `operations.pyi`, which `make format` writes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import Parameter, Signature
from itertools import groupby
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Time
from threadline.engine.folding.capabilities import installed
from threadline.engine.folding.catalogue import discover
from threadline.kernel.operation import JSON_TEXT, Group, Operation
from threadline.surfaces.operation_calls import method_name, path_names, shown
from threadline.surfaces.python.call import Call, call_of

HANDMADE = frozenset({"record"})
"""Operations with a method that is written by hand, because Python takes more than JSON can say."""
Carry: TypeAlias = Callable[[Call[Any], Mapping[str, Any]], Any]
"""Carries out a call with these values."""
_COLUMNS = 110


@cache
def built_in() -> tuple[Operation, ...]:
    """The operations of every capability that ships."""
    declared = discover(definitions=Definitions())
    return tuple(operation for operation in declared if isinstance(operation, Operation))


@cache
def known() -> tuple[Operation, ...]:
    """Those that ship, and those of capabilities that are installed here: a server may have them as well."""
    packages = [capability.package for capability in installed().on]
    declared = discover(*packages, definitions=Definitions())
    return tuple(operation for operation in declared if isinstance(operation, Operation))


def by_group(operations: Iterable[Operation]) -> Iterator[tuple[Group | None, dict[str, Operation]]]:
    """The operations that have a method, by name within their group; first those without a group."""
    chosen = sorted(
        (operation for operation in shown(operations, "python").values() if operation.name not in HANDMADE),
        key=lambda operation: ("" if operation.group is None else operation.group.name, operation.name),
    )
    for group, members in groupby(chosen, key=lambda operation: operation.group):
        yield group, {method_name(operation): operation for operation in members}


class Operations:
    """Every operation: those of a group by its name, and those that are in none."""

    def __init__(self, declared: Iterable[Operation] | None = None) -> None:
        """``declared`` are by default those that ship or are installed."""
        self._declared = declared

    def call(self, call: Call[Any], values: Mapping[str, Any], /) -> Any:
        """Carry out one operation, as every method does."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        # Names with an underscore are asked for by `copy` and `pickle`, before `__init__` has run.
        made = None if name.startswith("_") else self._made().get(name)
        if made is None:
            raise AttributeError(f"{type(self).__name__!r} has no operation {name!r}", name=name, obj=self)
        return made

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._made()})

    def _made(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for group, members in by_group(known() if self._declared is None else self._declared):
            if group is None:
                made |= {name: method_of(operation, self.call) for name, operation in members.items()}
            else:
                made[group.name] = _GroupMethods(group, members, self.call)
        self.__dict__.update(made)
        return made


class _GroupMethods:
    """The operations of one group."""

    def __init__(self, group: Group, members: Mapping[str, Operation], carry: Carry) -> None:
        self.__doc__ = group.summary
        self._name, self._members, self._carry = group.name, members, carry

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._members:
            raise AttributeError(f"{self._name!r} has no operation {name!r}", name=name, obj=self)
        self.__dict__[name] = made = method_of(self._members[name], self._carry)
        return made

    def __dir__(self) -> list[str]:
        return sorted(self._members)


def method_of(operation: Operation, carry: Carry) -> Callable[..., Any]:
    """The method that calls an operation, with signature and documentation for `help`."""
    call, signature = call_of(operation), _signature(operation)

    def method(*arguments: Any, **named: Any) -> Any:
        try:
            values = signature.bind(*arguments, **named).arguments
        except TypeError as error:
            raise TypeError(f"{operation.name}: {error}") from None
        return carry(call, values)

    method.__name__ = method.__qualname__ = method_name(operation)
    method.__doc__ = _documentation(operation)
    vars(method)["__signature__"] = signature  # what `inspect` reads
    return method


@cache
def _hints(params: type) -> dict[str, Any]:
    return get_type_hints(params, include_extras=True)


def _signature(operation: Operation) -> Signature:
    path = path_names(operation)
    parameters = {name: (hint, default) for name, hint, default in parameters_of(operation, Types())}
    return Signature(
        [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD if name in path else Parameter.KEYWORD_ONLY,
                default=parameters[name][1],
                annotation=parameters[name][0],
            )
            for name in sorted(parameters, key=lambda name: path.index(name) if name in path else len(path))
        ],
        return_annotation=Types().answer(operation.result),
    )


def _documentation(operation: Operation) -> str:
    hints = _hints(operation.params)
    fields = msgspec.structs.fields(operation.params)
    about = textwrap.fill(" ".join((operation.params.__doc__ or "").split()), _COLUMNS) if fields else ""
    meanings = [
        textwrap.fill(f"{field.encode_name}: {meaning}", _COLUMNS, subsequent_indent="    ")
        for field in fields
        if (meaning := _meaning(hints[field.name]))
    ]
    return "\n\n".join(filter(None, [operation.summary, about, "\n".join(meanings)]))


def _meaning(hint: Any) -> str:
    """What a parameter is for; of several descriptions the outermost, which is the one of this parameter."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return next(filter(None, map(_meaning, inner)), "")
    if origin is not Annotated:
        return ""
    texts = [meta.description for meta in inner[1:] if isinstance(meta, msgspec.Meta) and meta.description]
    return texts[-1] if texts else _meaning(inner[0])


def parameters_of(operation: Operation, types: Types) -> list[tuple[str, str, Any]]:
    """Name, type as it is written, and default of each parameter; `Parameter.empty` where there is none."""
    hints = _hints(operation.params)
    return [
        (field.encode_name, types.parameter(hints[field.name]), _default(field))
        for field in msgspec.structs.fields(operation.params)
    ]


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return () if field.default_factory is list else None
    return Parameter.empty if field.default is msgspec.NODEFAULT else field.default


class Types:
    """Types as they are written, and the imports that they need."""

    def __init__(self) -> None:
        self.imports: set[str] = set()

    def answer(self, hint: Any) -> str:
        """What a method returns."""
        if hint is bytes:
            return "bytes"
        return self._struct(hint) if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else "dict[str, Any]"

    def parameter(self, hint: Any) -> str:
        """What a method takes: whatever can be made into what the operation takes."""
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Annotated:
            if JSON_TEXT in inner[1:]:
                return f"{self.parameter(inner[0])} | Mapping[str, Any]"
            return "Moment" if get_args(Time)[1] in inner[1:] else self.parameter(inner[0])
        if origin in (Union, UnionType):
            kinds = [kind for kind in inner if kind is not msgspec.UnsetType]
            return " | ".join(dict.fromkeys(map(self.parameter, kinds)))
        if origin is Literal:
            return f"Literal[{', '.join(map(repr, inner))}]"
        if origin is list:
            return f"Many[{self.parameter(inner[0])}]"
        if origin is dict:
            return "Mapping[str, Any]"
        if hint is Any or hint is NoneType:
            return "Any" if hint is Any else "None"
        return f"{self._struct(hint)} | Mapping[str, Any]" if issubclass(hint, msgspec.Struct) else hint.__name__

    def _struct(self, struct: type) -> str:
        package, _, module = struct.__module__.rpartition(".")
        alias = struct.__module__.removeprefix("threadline.").removeprefix("capabilities.").replace(".", "_")
        self.imports.add(f"from {package} import {module} as {alias}")
        return f"{alias}.{struct.__name__}"
