"""Renders an operation as a command: path parameters are arguments, the others are options."""

from __future__ import annotations

import errno
import re
import sys
import types
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import click
import msgspec

from threadline.kernel.chart import Chart
from threadline.kernel.errors import InvalidValue, MalformedBody
from threadline.kernel.operation import ASIDE, SECRET, Operation
from threadline.surfaces.cli.printing import answer, layout_of
from threadline.surfaces.cli.session import Session, shared_parameters
from threadline.surfaces.operation_calls import convert, metas_of, path_names
from threadline.surfaces.row_formats import MEDIA_TYPES, Format, rendered, rows_of
from threadline.wire.message import BLANKS, read_array


def show_picture(chart: Chart, session: Session, png: Path | None, svg: Path | None, *, plotted: bool) -> None:
    """Write the files that are asked for; without any, and if ``plotted``, draw in the terminal."""
    try:
        if svg is not None:
            from threadline.surfaces.charts.svg import svg_file

            svg.write_text(svg_file(chart), "utf-8")
        if png is not None:
            from threadline.surfaces.charts.png import png as png_of

            png.write_bytes(png_of(chart))
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    if plotted and png is None and svg is None:
        from threadline.surfaces.charts.terminal import Plot

        session.console.print(Plot(chart))


ASIDE_PREFIX = "aside_"
"""Of the option that shows a part of the answer, which may bear the name of a parameter."""
EVENT_FILE = "event_file"
"""The argument of an operation that takes events: the file in which they are."""
_PLAIN: Mapping[Any, Any] = {str: click.STRING, int: click.INT, float: click.FLOAT}


class _Json(click.ParamType):  # type: ignore[type-arg]  # a type argument is known to newer releases of click only
    """A value as JSON text; ``@file`` takes it from a file, ``-`` from the standard input."""

    name = "json"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            text = _given(value)
            return self._read(text)
        except (msgspec.DecodeError, RecursionError) as error:
            advice = "; text stands in double quotes, such as '\"blue\"'" if value[:1].isalpha() else ""
            self.fail(f"this is not JSON: {error}{advice}", parameter, context)
        except OSError as error:
            self.fail(f"{value.removeprefix('@')}: {error.strerror}", parameter, context)

    def _read(self, text: bytes) -> Any:
        return msgspec.json.decode(text)


class _Events(_Json):
    """The same for a list of events, of which each is read by itself where the whole cannot be."""

    def _read(self, text: bytes) -> Any:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            with suppress(MalformedBody):
                elements, rest = read_array(text, None)
                if rest.strip(BLANKS) == b"[]":
                    return elements
            raise


class _EventFile(_Events):
    """Events in a file, or in the standard input: a JSON list, an object with one, or an event in each line."""

    name = "file"

    def __init__(self, member: str) -> None:
        self._member = member

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return super().convert(value if value == "-" else f"@{value}", parameter, context)

    def _read(self, text: bytes) -> Any:
        try:
            document = super()._read(text)
        except (msgspec.DecodeError, RecursionError, MalformedBody):
            lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
            if len(lines) < 2 or text.lstrip()[:1] != b"{":
                raise
            return [self._line(number, line) for number, line in lines]
        return document.get(self._member, [document]) if isinstance(document, dict) else document

    def _line(self, number: int, line: bytes) -> Any:
        try:
            return msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise msgspec.DecodeError(f"line {number}: {error}") from None


def _given(value: str) -> bytes:
    if value == "-":
        if sys.stdin is None:  # it was closed before we began
            raise OSError(errno.EBADF, "there is no standard input")
        return sys.stdin.buffer.read()
    return Path(value[1:]).read_bytes() if value.startswith("@") else value.encode("utf-8", "surrogateescape")


def _forms(operation: Operation) -> list[click.Parameter]:
    """What is asked of the form of the answer: that of a list, and files for a picture."""
    forms: list[click.Parameter] = []
    if rows_of(operation.result) is not None:
        kinds, meaning = click.Choice(["table", *MEDIA_TYPES]), "The form of the output; stderr has the next --cursor."
        forms.append(click.Option(["--format", "form"], type=kinds, help=meaning))
    if operation.picture is None:
        return forms
    files = click.Path(dir_okay=False, path_type=Path)
    return forms + [
        click.Option([f"--{extension}"], type=files, help=f"Write the picture as {extension.upper()} into a file.")
        for extension in ("png", "svg")
    ]


def _asides(operation: Operation) -> dict[str, str]:
    """The parts of the answer that are shown only if they are asked for, and what each is."""
    if not (isinstance(operation.result, type) and issubclass(operation.result, msgspec.Struct)):
        return {}
    hints = get_type_hints(operation.result, include_extras=True)
    return {name: _description(hint) for name, hint in hints.items() if ASIDE in metas_of(hint)}


def _without(result: Any, names: set[str]) -> Any:
    """An answer without some of its fields, as plain values."""
    plain = msgspec.to_builtins(result)
    return {name: value for name, value in plain.items() if name not in names} if names else plain


def render(operation: Operation) -> click.Command:
    """The command of an operation."""
    member = "" if operation.intake is None else operation.intake.member
    hints = get_type_hints(operation.params, include_extras=True)
    names = path_names(operation)
    fields = {field.encode_name: field for field in msgspec.structs.fields(operation.params)}
    secrets = {name: field.required for name, field in fields.items() if SECRET in metas_of(hints[field.name])}
    parameters: list[click.Parameter] = [click.Argument([name], metavar=name.upper()) for name in names]
    for name, field in fields.items():
        if name in secrets and not field.required:
            parameters.append(click.Option([_flag(name), name], is_flag=True, help=f"Ask for a new {name}."))
        elif name not in secrets and name not in names:
            is_intake = member == name
            kind = _Events() if is_intake else None
            parameters.append(_option(name, hints[field.name], field.required and not is_intake, _default(field), kind))
            if is_intake:
                parameters.append(click.Argument([EVENT_FILE], type=_EventFile(name), required=False, metavar="[FILE]"))
    asides = _asides(operation)
    parameters += [
        click.Option([f"--{name}", f"{ASIDE_PREFIX}{name}"], is_flag=True, help=f"Show this as well: {text}")
        for name, text in asides.items()
    ]
    parameters += [
        *shared_parameters(),
        click.Option(["--all", "show_all"], is_flag=True, help="Show all columns and fields."),
        *_forms(operation),
    ]

    @click.pass_obj
    def run(
        session: Session,
        /,
        as_json: bool,
        show_all: bool = False,
        form: str | None = None,
        png: Path | None = None,
        svg: Path | None = None,
        **given: Any,
    ) -> None:
        given_asides = {name: given.pop(f"{ASIDE_PREFIX}{name}") for name in asides}
        if member:
            _take_file(given, member)
        asked = {name: _asked(name) if required or given.pop(name) else None for name, required in secrets.items()}
        values = {name: _listed(value) for name, value in {**given, **asked}.items() if value not in (None, ())}
        try:
            params = convert(operation, values, strict=False)
        except InvalidValue as error:
            raise click.UsageError(str(error)) from None
        result = session.run(operation, params)
        if form in ("csv", "parquet"):
            _write_rows(result, cast(Format, form))
        else:
            as_json = as_json or form == "json"
            shown = result if as_json else _without(result, {name for name in asides if not given_asides[name]})
            answer(shown, session.console, as_json=as_json, layout=layout_of(operation.result, everything=show_all))
        if operation.picture is not None:
            show_picture(operation.picture(result), session, png, svg, plotted=not (as_json or form))
        if operation.refused(result):
            raise click.exceptions.Exit(1)

    documented = [
        f"{name.upper()}: {help_text}" for name in names if (help_text := _description(hints[fields[name].name]))
    ]
    if member:
        documented.append("FILE: the events, as a JSON list or an event in each line; - is the standard input.")
    # The first sentence of the parameters only says what the arguments say.
    _, *further = re.split(r"(?<=\.)\s", operation.params.__doc__ or "", maxsplit=1)
    text = "\n\n".join((operation.summary, *documented, *(further if fields else ())))
    return click.Command(
        operation.verb.replace("_", "-"), callback=run, params=parameters, help=text, short_help=operation.summary
    )


def _take_file(given: dict[str, Any], member: str) -> None:
    """Events come from a file or from the option, and one of the two is needed."""
    events = given.pop(EVENT_FILE, None)
    if (events is None) == (given[member] is None):
        raise click.UsageError(f"name a FILE of events (- is the standard input), or give {_flag(member)}")
    if events is not None:
        given[member] = events


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _asked(name: str) -> str:
    """A secret, asked for twice on a terminal, else a line of the standard input."""
    if sys.stdin is not None and sys.stdin.isatty():
        return str(click.prompt(name.capitalize(), hide_input=True, confirmation_prompt=True, err=True))
    return "" if sys.stdin is None else sys.stdin.readline().rstrip("\r\n")


def _write_rows(result: Any, form: Format) -> None:
    if form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is not text; send it to a file: … --format parquet > people.parquet")
    body, following = rendered(result, form)
    click.echo(body, nl=False)
    if following:
        click.echo(f"more: --cursor {following}", err=True)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _default(field: msgspec.structs.FieldInfo) -> str:
    """What an option is where it is not given, in words; empty where that is nothing."""
    is_shown = isinstance(field.default, str | int | float) and not isinstance(field.default, bool)
    return f"Default: {field.default}." if is_shown and field.default != "" else ""


def _option(name: str, hint: Any, required: bool, default: str, kind: _Json | None = None) -> click.Option:
    hint, help_text = _unwrapped(hint)
    help_text = f"{help_text} {default}".strip()
    flag = _flag(name)
    if hint is bool:
        return click.Option([f"{flag}/--no-{flag[2:]}", name], default=None, help=help_text, required=required)
    if get_origin(hint) is list:
        inside, _ = _unwrapped(get_args(hint)[0])
        item_kind = _kind(inside)
        if not isinstance(item_kind, _Json):
            return click.Option(
                [flag, name], type=item_kind, multiple=True, help=f"{help_text} May be repeated.".strip()
            )
    return click.Option([flag, name], type=kind or _kind(hint), help=help_text, required=required)


def _kind(hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return click.Choice([str(arg) for arg in get_args(hint) if arg != ""])  # what is not given is empty
    return _PLAIN.get(hint, _Json())


def _description(hint: Any) -> str:
    """What is to be known of a parameter: its meaning, else what it can be."""
    hint, text = _unwrapped(hint)
    return text or (f"one of {', '.join(get_args(hint))}." if get_origin(hint) is Literal else "")


def _unwrapped(hint: Any) -> tuple[Any, str]:
    """A type without its annotations and without None, and what the annotations say of it."""
    text = ""
    while True:
        if get_origin(hint) is Annotated:
            metas = [meta for meta in hint.__metadata__ if isinstance(meta, msgspec.Meta)]
            text = text or next((meta.description for meta in metas if meta.description), "")
            hint = hint.__origin__
        elif get_origin(hint) in (Union, types.UnionType):
            kinds = [arg for arg in get_args(hint) if arg not in (type(None), msgspec.UnsetType)]
            if len(kinds) > 1:
                return Any, text
            hint = kinds[0]
        else:
            return hint, text
