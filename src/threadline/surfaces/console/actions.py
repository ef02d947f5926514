"""Forms that change something: what was filled in becomes the parameters of an operation, and is run as one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec

from threadline.capabilities.foundation.definitions import Document, Noted, Plain
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event_limits import too_deep
from threadline.kernel.limits import JSON_DEPTH_MAX
from threadline.kernel.operation import Operation
from threadline.surfaces.console.asking import Asking
from threadline.wire.message import depth, depth_bound
from threadline.wire.multipart import FileForm

FIELDS_MAX = 2_000
JSON = ":json"
"""Ends the name of a field whose text is JSON."""
YAML = ":yaml"
"""Ends the name of a field whose text is YAML, as in a file of definitions."""
ALL = "*"
"""The name of a field that is a mapping with parameters."""
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
    """Where to go afterwards; ``{name}`` stands for a member of the result, ``{job.id}`` for a member of that. Empty:
    back."""

    def destination(self, result: Any) -> str:
        """The page to be shown afterwards."""

        def member(match: re.Match[str]) -> str:
            value = result
            for name in match[1].split("."):
                value = value.get(name, "") if isinstance(value, dict) else ""
            return quote(str(value), safe="")

        # Looked at once more: a member that is empty leaves two slashes where it stood between them.
        return local_address(re.sub(r"\{([\w.]+)\}", member, self.then), self.back) if self.then else self.back


Pairs = Sequence[tuple[str, str]]


def as_fields(form: FileForm) -> bytes:
    """A form with a file as one without: the field `content` has its bytes in base64, and `name` its name, unless the
    form gives one."""
    name = form.file_name.replace("\\", "/").rpartition("/")[2]
    given = {"content": b64encode(form.content).decode(), "name": name}
    return urlencode({**given, **{name: value for name, value in form.fields.items() if value}}).encode()


def read_form(body: bytes, complete: Callable[[Pairs], Pairs] = lambda pairs: pairs) -> Form:
    """A form as browsers send it; ``complete`` makes one field of several. Raises `InvalidValue` for what is none."""
    pairs = complete(_pairs(body))
    plain = {name: value for name, value in pairs if name.startswith("_")}
    values = values_of(pairs)
    back, then = local_address(plain.get("_back", "")), local_address(plain.get("_then", ""), "")
    return Form(values, plain.get("_csrf", ""), back, then)


def values_of(pairs: Pairs) -> dict[str, Any]:
    """The parameters that fields say; those that were left empty are left out, and so is what begins with ``_``."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name.startswith("_") or not value.strip():
            continue
        if name.endswith(JSON):
            name = name.removesuffix(JSON)
            values[name] = _json(name, value)
        elif name.endswith(YAML):
            name = name.removesuffix(YAML)
            made = _yaml(name, value)
            values |= made if name == ALL and isinstance(made, dict) else {name: made}
        elif name.endswith(LIST):
            name = name.removesuffix(LIST)
            before = values.get(name)
            lines = [line.strip() for line in value.splitlines() if line.strip()]
            values[name] = [*(before if isinstance(before, list) else ()), *lines]
        else:
            values[name] = value.replace("\r\n", "\n")
    return _nested(values)


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
        if len(outer) > JSON_DEPTH_MAX:
            raise too_deep()
        inside = made
        for part in outer:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise _both(name)
        if last in inside:
            raise _both(name)
        inside[last] = value
    return {name: _listed(value) for name, value in made.items()}


def _both(name: str) -> InvalidValue:
    return InvalidValue(f"{name[:64]!r} is a field of something that another field gives as a whole", param=name[:64])


def _listed(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    inside = {name: _listed(item) for name, item in value.items()}
    return list(inside.values()) if all(name.isdigit() for name in inside) else inside


def _json(name: str, text: str) -> Any:
    given = text.encode("utf-8", "surrogatepass")
    if depth_bound(given) > JSON_DEPTH_MAX and depth(given) > JSON_DEPTH_MAX:
        raise too_deep()
    try:
        return msgspec.json.decode(given)
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


def local_address(address: str, default: str = "/") -> str:
    """The path and the query of an address of this server; the default for any other.

    Browsers leave out tabs and line ends and take a backslash for a slash, and two slashes begin the name of a host.
    What comes back is what was parsed, so that nothing else in the text is ever followed.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return default
    made = urlunsplit(("", "", parts.path, parts.query, parts.fragment))
    if parts.scheme or parts.netloc or not parts.path.startswith("/"):
        return default
    return default if any(text[:1] in "/\\" and text[1:2] in ("/", "\\") for text in (address.strip(), made)) else made
