"""The same question at the other doors: what was asked for a page, as HTTP, as a command and in Python."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from threadline.kernel.operation import Operation
from threadline.surfaces.operation_calls import method_name, path_names


class Call(NamedTuple):
    """An operation and the parameters that it was asked with."""

    operation: Operation
    values: Mapping[str, Any]

    def http(self, server: str) -> str:
        """A command of curl; the token comes from the environment."""
        names = path_names(self.operation)
        path = re.sub(r"\{(\w+)\}", lambda m: quote(str(self.values.get(m[1], "")), safe=""), self.operation.path)
        rest = {name: value for name, value in self.values.items() if name not in names}
        parts = ["curl", "-H", '"Authorization: Bearer $TOKEN"']
        if self.operation.method == "POST":
            parts += ["-H", "'content-type: application/json'", "-d", shlex.quote(json.dumps(rest, default=str))]
        elif rest:
            path += f"?{urlencode(rest, True)}"
        if self.operation.method == "DELETE":
            parts += ["-X", "DELETE"]
        return " ".join([*parts, shlex.quote(f"{server}{path}")])

    def command(self) -> str:
        """The command, or nothing where the operation is none."""
        if "cli" not in self.operation.shown_on:
            return ""
        noun = [] if self.operation.group is None else [self.operation.group.name]
        names = path_names(self.operation)
        parts = ["threadline", *(part.replace("_", "-") for part in (*noun, self.operation.verb))]
        parts += [shlex.quote(str(self.values.get(name, ""))) for name in names]
        for name, value in self.values.items():
            if name in names or value is False:
                continue
            option = f"--{name.replace('_', '-')}"
            is_list = isinstance(value, (list, tuple)) and not any(isinstance(item, dict) for item in value)
            for item in value if is_list else [value]:
                text = str(item) if isinstance(item, (str, int, float)) else json.dumps(item, default=str)
                parts += [option] if item is True else [option, shlex.quote(text)]
        return " ".join(parts)

    def python(self) -> str:
        """The call of the Python API."""
        if "python" not in self.operation.shown_on:
            return ""
        noun = "" if self.operation.group is None else f"{self.operation.group.name}."
        given = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"shop.{noun}{method_name(self.operation)}({given})"
