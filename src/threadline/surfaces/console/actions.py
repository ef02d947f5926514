"""Forms that change something: what was filled in becomes the parameters of an operation, and is run as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from threadline.capabilities.definitions import Document, Noted, Plain
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Operation
from threadline.surfaces.console.asking import Asking

FIELDS_MAX = 2_000
JSON = ":json"
"""Ends the name of a field whose text is JSON."""
YAML = ":yaml"
"""Ends the name of a field whose text is YAML, as in a file of definitions."""
LIST = ":list"
"""Ends the name of a field that is one of a list; also a text of several, one a line.

Dots in a name lead into objects and lists: ``audience.segment``, ``arms.0.name``."""


class Form(NamedTuple):
    """What a form says."""

    values: Mapping[str, Any]
    """The parameters by name; fields that were left empty are left out."""
    csrf: str
    back: str
    """The page that has the form."""
    then: str
    """Where to go afterwards; ``{name}`` stands for a member of the result. Empty: back."""

    def destination(self, result: Any) -> str:
        """The page to be shown afterwards."""

        def member(match: re.Match[str]) -> str:
            return quote(str(result.get(match[1], "")) if isinstance(result, dict) else "", safe="")

        return re.sub(r"\{(\w+)\}", member, self.then) if self.then else self.back


Pairs = Sequence[tuple[str, str]]


def read_form(body: bytes, complete: Callable[[Pairs], Pairs] = lambda pairs: pairs) -> Form:
    """A form as browsers send it; ``complete`` makes one field of several. Raises `InvalidValue` for what is none."""
    pairs = complete(_pairs(body))
    values: dict[str, Any] = {}
    plain = {name: value for name, value in pairs if name.startswith("_")}
    for name, value in pairs:
        if name.startswith("_") or not value.strip():
            continue
        if name.endswith(JSON):
            name = name.removesuffix(JSON)
            values[name] = _json(name, value)
        elif name.endswith(YAML):
            name = name.removesuffix(YAML)
            values[name] = _yaml(name, value)
        elif name.endswith(LIST):
            lines = [line.strip() for line in value.splitlines() if line.strip()]
            values.setdefault(name.removesuffix(LIST), []).extend(lines)
        else:
            values[name] = value.replace("\r\n", "\n")
    values = _nested(values)
    return Form(values, plain.get("_csrf", ""), _here(plain.get("_back", "")), _here(plain.get("_then", ""), ""))


def read_fields(body: bytes) -> dict[str, str]:
    """The fields of a form as they were sent. Raises `InvalidValue` for what is none."""
    return dict(_pairs(body))


def _pairs(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InvalidValue(f"this is no form, or one with more than {FIELDS_MAX} fields") from None


def result_of(asking: Asking, operation: Operation, form: Form) -> Any:
    """The answer of the operation as plain data."""
    return asking.ask(operation.name, **form.values)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``arms.0.name`` as the member ``name`` of the first of ``arms``; entries that were left empty are closed up."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        inside = made
        for part in outer:
            inside = inside.setdefault(part, {})
        inside[last] = value
    return {name: _listed(value) for name, value in made.items()}


def _listed(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    inside = {name: _listed(item) for name, item in value.items()}
    return list(inside.values()) if all(name.isdigit() for name in inside) else inside


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidValue(f"{name}: this is not JSON: {error}", param=name) from None


def _yaml(name: str, text: str) -> Any:
    """The plain value; of aliases only as much as a definition may hold."""
    document = Document(name)
    root = document.compose(text)
    with suppress(Noted):
        value = None if root is None else Plain(document, name).part(root).value
    if document.problems:
        raise InvalidValue("\n".join(document.problems), param=name)
    return value


def _here(address: str, default: str = "/") -> str:
    parts = urlsplit(address)
    is_here = address.startswith("/") and not address.startswith(("//", "/\\")) and not parts.netloc
    return address if is_here else default
