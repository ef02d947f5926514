"""How every surface calls an operation: which it shows, parameters by name, problems in the caller's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from keyword import iskeyword
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from threadline.capabilities.foundation.definitions.applying import JOB_KIND as APPLYING
from threadline.capabilities.foundation.events.seen import seen_types
from threadline.engine.context import Context
from threadline.kernel.applied import IndexPart
from threadline.kernel.errors import InvalidValue, ThreadlineError
from threadline.kernel.names import Lacking, hint, named_as
from threadline.kernel.operation import JSON_TEXT, Operation, Surface
from threadline.kernel.suggestion import suggestion
from threadline.kernel.typed import converted, readable
from threadline.surfaces.auditing import note
from threadline.surfaces.lanes import go_on_as


def shown(operations: Iterable[Operation], surface: Surface) -> dict[str, Operation]:
    """The operations that a surface shows, by name."""
    return {operation.name: operation for operation in operations if surface in operation.shown_on}


def method_name(operation: Operation) -> str:
    """The name of its method in Python, where some verbs are words of the language."""
    return f"{operation.verb}_" if iskeyword(operation.verb) else operation.verb


def path_names(operation: Operation) -> tuple[str, ...]:
    """The names of the path's parameters, in the order of the path."""
    return tuple(part[1:-1] for part in operation.path.split("/") if part.startswith("{"))


def field_names(operation: Operation) -> tuple[str, ...]:
    """The names of all parameters."""
    return tuple(_attributes_of(operation.params))


@lru_cache(maxsize=1_000)
def _attributes_of(params: type) -> dict[str, str]:
    # Resolving a struct's annotations takes a tenth of a millisecond: a tenth of what it costs to read a person.
    return {field.encode_name: field.name for field in msgspec.structs.fields(params)}


def convert(operation: Operation, values: Mapping[str, Any], *, strict: bool) -> Any:
    """The operation's parameters from values by name. ``strict=False`` reads numbers and switches from text as well.

    Raises `InvalidValue` that names the parameter and, for an unknown one, the nearest known.
    """
    known = field_names(operation)
    for name in values:
        if name not in known:
            hint = suggestion(str(name), known)
            message = f"{str(name)[:64]!r} is not a parameter of {operation.name!r}; {hint}"
            raise InvalidValue(message, param=str(name)[:64])
    values = {
        name: msgspec.json.encode(value).decode()
        if isinstance(value, dict) and name in _json_texts_of(operation.params)
        else value
        for name, value in values.items()
    }
    try:
        params: Any = converted(values, operation.params, strict=strict)
    except msgspec.ValidationError as error:
        message = readable(error)
        raise InvalidValue(message, param=_named_in(message, known)) from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"the parameters cannot be read: {error}") from None
    if not strict:
        _refuse_nulls(operation, values, params)
    _check(operation, values)
    return params


def _named_in(message: str, known: Iterable[str]) -> str:
    """The parameter that a message begins with, or names as missing."""
    name = re.match(r"`?(\w+)", message)
    return name[1] if name is not None and name[1] in known else ""


def _check(operation: Operation, values: Mapping[str, Any]) -> None:
    """Refuse what has the right type and no meaning: a text that is no time, parameters that exclude each other."""
    given = {
        name for name, value in values.items() if value is not None and value is not False and value not in ("", [])
    }
    for name, check in _checks_of(operation.params).items():
        if values.get(name) is not None:
            try:
                check(values[name])
            except InvalidValue as error:
                raise InvalidValue(f"{name}: {error}", param=name) from None
    for choice in operation.choices:
        chosen = [name for name in choice.names if name in given]
        if len(chosen) > 1 or (choice.required and not chosen):
            raise InvalidValue(str(choice), param=chosen[-1] if chosen else choice.names[0])
    for name, other in operation.needs:
        if name in given and other not in given:
            raise InvalidValue(f"`{name}` needs `{other}`; give it as well", param=name)


@lru_cache(maxsize=1_000)
def _checks_of(params: type) -> dict[str, Callable[[str], object]]:
    """The parameters whose text has to be of a form, with what refuses all other text."""
    hints = get_type_hints(params, include_extras=True)
    checks = {}
    for field in msgspec.structs.fields(params):
        for meta in metas_of(hints[field.name]):
            if meta.extra is not None and "check" in meta.extra:
                checks[field.encode_name] = meta.extra["check"]
    return checks


@lru_cache(maxsize=1_000)
def _json_texts_of(params: type) -> frozenset[str]:
    """The parameters whose text is JSON."""
    hints = get_type_hints(params, include_extras=True)
    fields = msgspec.structs.fields(params)
    return frozenset(field.encode_name for field in fields if JSON_TEXT in metas_of(hints[field.name]))


def metas_of(hint: Any) -> Iterator[msgspec.Meta]:
    """What the annotations of a parameter's type say of it, those within a list left out."""
    yield from (meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta))
    if get_origin(hint) is Annotated:
        yield from metas_of(hint.__origin__)
    elif get_origin(hint) is not list:
        for inside in get_args(hint):
            yield from metas_of(inside)


def _refuse_nulls(operation: Operation, values: Mapping[str, Any], params: Any) -> None:
    # Of numbers and choices, msgspec takes the text null for no value, which no document of ours says.
    for name in values:
        if values[name] is not None and getattr(params, _attributes_of(operation.params)[name]) is None:
            message = f"{name}: expected a value, got `null`; leave it out where none is meant"
            raise InvalidValue(message, param=name)


def call(operation: Operation, context: Context, values: Mapping[str, Any], *, strict: bool) -> Any:
    """Run an operation and answer its result as the operation gives it."""
    return run(operation, context, convert(operation, values, strict=strict))


def run(operation: Operation, context: Context, params: Any) -> Any:
    """Run an operation for whoever asks a surface; every surface does it here.

    What may change something is in the audit log before the answer leaves, also where it fails.
    """
    go_on_as(operation.work(params))
    _refuse_unknown_names(operation, context, params)
    params = with_types(operation, context, params)
    _refuse_lacking(operation, context, params)
    # A dry run is a question: it changes nothing, and pages ask it to show what would be.
    if not operation.is_audited or getattr(params, "dry_run", False):
        return operation.run(context, params)
    path = path_names(operation)
    try:
        result = operation.run(context, params)
    except Exception as error:
        code = error.code if isinstance(error, ThreadlineError) else "internal"
        with suppress(ThreadlineError):  # the first error says more
            note(operation, path, context, params, code)
        raise
    note(operation, path, context, params, "refused" if operation.refused(result) else "done")
    return result


def _refuse_unknown_names(operation: Operation, context: Context, params: Any) -> None:
    """Refuse a name that nothing has, with the nearest: answered, it would be an empty answer."""
    for name, kind in named_kinds(operation.params).items():
        value = getattr(params, _attributes_of(operation.params)[name])
        for called in value if isinstance(value, list) else [value] if value else ():
            context.engine.catalogue.names.refuse(kind, called, name, context.engine, context.workspace)


def _refuse_lacking(operation: Operation, context: Context, params: Any) -> None:
    """Refuse a value with a name in it that nothing has, such as conditions on a misspelt property."""
    for name, lacking, default in looked_into(operation.params):
        value = getattr(params, _attributes_of(operation.params)[name])
        for text in value if isinstance(value, list) else [value] if value and value != default else ():
            if problem := lacking(context.engine, context.workspace, text):
                raise InvalidValue(f"{name}: {problem}", param=name)


@lru_cache(maxsize=1_000)
def looked_into(params: type) -> tuple[tuple[str, Lacking, Any], ...]:
    """The parameters whose values have names in them, what says which of these nothing has, and the default."""
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(params)}
    return tuple((name, extra["lacking"], defaults[name]) for name, extra in _marks_of(params) if "lacking" in extra)


@lru_cache(maxsize=1_000)
def named_kinds(params: type) -> dict[str, str]:
    """The parameters that are names, or lists of them, each with the `NameKind` that it is one of."""
    return {name: extra["names"] for name, extra in _marks_of(params) if "names" in extra}


@lru_cache(maxsize=1_000)
def offered_kinds(params: type) -> dict[str, str]:
    """The parameters of which forms suggest values, each with the `NameKind` whose names these are."""
    return named_kinds(params) | {name: extra["offers"] for name, extra in _marks_of(params) if "offers" in extra}


@lru_cache(maxsize=1_000)
def typed(params: type) -> tuple[str, ...]:
    """The parameters that are types of events, or steps that begin with one, or lists of them."""
    return tuple(name for name, extra in _marks_of(params) if extra.get("event_type") is True)


def _marks_of(params: type) -> Iterator[tuple[str, dict[Any, Any]]]:
    """What the annotations of each parameter's type say of it, and those of the items of a list."""
    hints = get_type_hints(params, include_extras=True)
    for field in msgspec.structs.fields(params):
        hint = hints[field.name]
        for meta in (*metas_of(hint), *(meta for item in _items_of(hint) for meta in metas_of(item))):
            if meta.extra is not None:
                yield field.encode_name, meta.extra


def with_types(operation: Operation, context: Context, params: Any) -> Any:
    """The parameters with each type of events by its own name, where it is written as pages show it: `Signed up`.

    Raises `InvalidValue` for one that is neither declared nor was ever sent: its answer would be 0 of 0.
    """
    for name in typed(operation.params):
        attribute = _attributes_of(operation.params)[name]
        value = getattr(params, attribute)
        steps = [_with_type(step, name, context) for step in (value if isinstance(value, list) else [value])]
        if steps not in (value, [value]):
            params = msgspec.structs.replace(params, **{attribute: steps if isinstance(value, list) else steps[0]})
    return params


def _with_type(step: str, param: str, context: Context) -> str:
    try:
        written = msgspec.json.decode(step) if step.startswith("{") else {"event": step}
    except msgspec.MsgspecError:
        return step  # its operation says what is wrong with it
    type = written.get("event")
    declared = context.engine.catalogue.event_types
    if not isinstance(type, str) or type in ("", ANY_TYPE) or type in declared.names:
        return step
    seen = seen_types(context.engine, context.workspace)
    known = declared.and_seen(seen.names).names
    meant = type if type in known else named_as(type, known)
    if meant is None and seen.is_complete:
        message = f"{param}: no event of the type {type[:64]!r} was ever sent; {hint(type, known)}"
        raise InvalidValue(message, param=param)
    if meant in (None, type):
        return step
    return msgspec.json.encode({**written, "event": meant}).decode() if step.startswith("{") else str(meant)


def _items_of(hint: Any) -> tuple[Any, ...]:
    """The type of the items, where a hint is of a list."""
    while get_origin(hint) is Annotated:
        hint = hint.__origin__
    return get_args(hint) if get_origin(hint) is list else ()


def _is_applied(context: Context) -> bool:
    """Whether a job brings everybody up to the definitions in force, as far as this workspace knows."""
    jobs, _ = context.engine.jobs.page(context.workspace, "", JOBS_LOOKED_AT)
    return any(job.kind == APPLYING and not job.has_ended for job in jobs)


JOBS_LOOKED_AT = 20
"""The newest jobs, among which one is looked for."""
ANY_TYPE = "*"
STALE_HEADER = "threadline-stale"
"""The header of HTTP that has the note."""


def stale_note(operation: Operation, context: Context, params: Any) -> str:
    """What an answer relies on that is older than the definitions in force, and what to do; empty: nothing is."""
    parts = tuple(map(IndexPart, operation.relies_on)) if operation.relied_on is None else operation.relied_on(params)
    filling = context.engine.maintenance.filling(parts)
    if not filling:
        return ""
    is_begun = any(unfilled.share for unfilled in filling) or _is_applied(context)
    todo = (
        "the answer is of what was found so far" if is_begun else "run `threadline apply` or call `definitions_apply`"
    )
    return f"{', '.join(map(str, filling))}; {todo}"
