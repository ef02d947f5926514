"""Writes what type checkers and editors know of the operations: ``python -m threadline.surfaces.python.stub``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path

from msgspec import UNSET

from threadline.kernel.operation import Operation
from threadline.surfaces.operation_calls import path_names
from threadline.surfaces.python.methods import Types, built_in, by_group, parameters_of

FILE = Path(__file__).with_name("operations.pyi")
_COLUMNS = 120
_HEAD = '''"""A method for each operation. Written by `make format`; change the operations instead."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Concatenate, Generic, Literal, ParamSpec

from msgspec import UNSET

{imports}
from msgspec import UNSET

from threadline.kernel.operation import Operation
from threadline.surfaces.python.call import Answer, Call, Many, Moment

Parameters = ParamSpec("Parameters")

class _Awaited(Generic[Parameters, Answer]):
    """The same method, to be awaited."""
    def __init__(self, method: Callable[Concatenate[Any, Parameters], Answer]) -> None: ...
    def __get__(self, instance: object, owner: object) -> Callable[Parameters, Awaitable[Answer]]: ...
'''
_OPERATIONS = '''
class Operations:
    """Every operation: those of a group by its name, and those that are in none."""
    def __init__(self, declared: Iterable[Operation] | None = None) -> None: ...
    def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer: ...
'''
_ASYNC_OPERATIONS = '''
class AsyncOperations:
    """Every operation, to be awaited."""
    def __init__(self, declared: Iterable[Operation] | None = None) -> None: ...
    async def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer: ...
'''


def text() -> str:
    """The stub."""
    types = Types()
    groups, waiting, awaited = "", _OPERATIONS, _ASYNC_OPERATIONS
    for group, members in by_group(built_in()):
        methods = "".join(line for name, operation in members.items() for line in _method(name, operation, types))
        if group is None:
            waiting += methods
            awaited += _awaited("Operations", members)
            continue
        name = "".join(part.capitalize() for part in group.name.split("_"))
        groups += f'\nclass _{name}:\n    """{group.summary}"""\n{methods}'
        groups += f"\nclass _Async{name}:\n{_awaited(f'_{name}', members)}"
        waiting += f"    {group.name}: _{name}\n"
        awaited += f"    {group.name}: _Async{name}\n"
    return _HEAD.format(imports="\n".join(sorted(types.imports))) + groups + waiting + awaited


def _awaited(name: str, members: dict[str, Operation]) -> str:
    return "".join(f"    {verb} = _Awaited({name}.{verb})\n" for verb in members)


def _method(name: str, operation: Operation, types: Types) -> Iterator[str]:
    written = {
        parameter: f"{parameter}: {hint}{'' if default is Parameter.empty else f' = {_shown(default)}'}"
        for parameter, hint, default in parameters_of(operation, types)
    }
    path = [written.pop(parameter) for parameter in path_names(operation)]
    parameters = ["self", *path, *(["*"] if written else []), *written.values()]
    # Lines end between parameters only: an end within a literal text would be an error.
    whole = ", ".join(parameter.replace(" ", "\0") for parameter in parameters)
    head = f"def {name}({whole})\0->\0{types.answer(operation.result)}:"
    lines = textwrap.wrap(head, _COLUMNS - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    yield from (f"    {line}\n".replace("\0", " ") for line in lines)
    yield f'        """{operation.summary}"""\n'


def _shown(default: object) -> str:
    return "UNSET" if default is UNSET else repr(default)


if __name__ == "__main__":
    FILE.write_text(text())
