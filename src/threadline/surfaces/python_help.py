"""What Python's own help says of an operation: its parameters with their types, defaults and meanings."""

from __future__ import annotations

from functools import lru_cache, reduce
from inspect import Parameter, Signature
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from threadline.kernel.operation import Operation
from threadline.surfaces.operation_calls import path_names


def signature_of(operation: Operation) -> Signature:
    """The parameters as a call takes them: those of the path first and in their order, all others by name."""
    return _signature(operation.params, path_names(operation))


def help_of(operation: Operation) -> str:
    """What the operation does, and a line for each parameter of which more is to be said than its name."""
    about, meanings = _about(operation.params)
    return "\n\n".join(filter(None, (operation.summary, about, meanings)))


@lru_cache(maxsize=1_000)
def _signature(params: type[Any], path: tuple[str, ...]) -> Signature:
    fields = {field.encode_name: field for field in msgspec.structs.fields(params)}
    first = [_parameter(fields[name], Parameter.POSITIONAL_OR_KEYWORD) for name in path]
    others = [_parameter(field, Parameter.KEYWORD_ONLY) for name, field in fields.items() if name not in path]
    return Signature([*first, *others], return_annotation=Any)


@lru_cache(maxsize=1_000)
def _about(params: type[Any]) -> tuple[str, str]:
    meanings = [(field.encode_name, _meaning(field.type)) for field in msgspec.structs.fields(params)]
    return params.__doc__ or "", "\n".join(f"{name}: {meaning}" for name, meaning in meanings if meaning)


def _parameter(field: msgspec.structs.FieldInfo, kind: Any) -> Parameter:
    default = Parameter.empty if field.default is msgspec.NODEFAULT else field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    return Parameter(field.encode_name, kind, default=default, annotation=_bare(field.type))


def _bare(type: Any) -> Any:
    """A type without what is only said of its values, also inside of unions and lists."""
    origin, inner = get_origin(type), get_args(type)
    if origin is Annotated:
        return _bare(inner[0])
    if not inner or origin is Literal:
        return type
    bare = tuple(_bare(each) for each in inner)
    return reduce(or_, bare) if _is_union(origin) else origin[bare]


def _meaning(type: Any) -> str:
    """What a parameter is for; of several descriptions the outermost, which is the one of this parameter."""
    origin, inner = get_origin(type), get_args(type)
    if _is_union(origin):
        return next(filter(None, map(_meaning, inner)), "")
    if origin is not Annotated:
        return ""
    found = [meta.description for meta in inner[1:] if isinstance(meta, msgspec.Meta) and meta.description]
    return found[-1] if found else _meaning(inner[0])


def _is_union(origin: Any) -> bool:
    return origin is Union or origin is UnionType
