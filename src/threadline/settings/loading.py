"""Where the settings in force come from: arguments, the environment, files; the one reader of the environment."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.event import WORKSPACE_FORM, is_workspace
from threadline.kernel.suggestion import nearest
from threadline.settings.declared import NOT_IN_FILES, PREFIX, SETTINGS_SECTION, Settings

DEFINITIONS_FILE = "threadline.yaml"
"""Looked for beside the store, because definitions belong to the data and not to the folder one happens to be in."""
_NAME_IT = "rename it, or name the file or the folder with THREADLINE_DEFINITIONS"

ENVIRONMENT = "the environment"
IN_FILES = "`settings:` in the definitions"

EMBEDDED = "sqlite:///"
"""What a URL of the embedded store begins with; the path follows."""
IN_MEMORY = {":memory:": "memory:", "sqlite://": "memory:", "sqlite:///:memory:": "memory:"}
"""How SQLite and its clients name a store without a file, and how we do: else a file of that name would be made."""

_NOT_OURS = "THREADLINE_TEST_"
"""Variables of the test suite, which a server that a test starts inherits."""
_OF_CLIENTS = frozenset({"THREADLINE_URL", "THREADLINE_TOKEN"})
"""Which server is asked, and by what right: no settings of a store."""


def load(
    given: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    onto: Settings | None = None,
    *,
    files: bool = True,
) -> Settings:
    """The settings in force: what is ``given`` beats the environment, that beats `threadline.yaml`, that the defaults.

    With ``onto`` only what is given is laid over it: it was loaded or made already. Without ``files`` what stands in
    them is left out. Raises `InvalidSetting` that names the setting, where it was set and, for an unknown one, the
    nearest known; of files with every mistake, one a line.
    """
    given = {name: value for name, value in (given or {}).items() if value is not None}
    _check_names(given, "an argument")
    if onto is not None:
        return _convert(given, onto, "an argument")
    settings = _from_environment(os.environ if environ is None else environ)
    variables = {name: value for name, value in settings.items() if name not in given}
    outside = _laid_over(Settings(), variables, given)
    return _laid_over(_from_files(definition_files(definitions_file(outside))), variables, given) if files else outside


def _laid_over(onto: Settings, variables: Mapping[str, str], given: Mapping[str, Any]) -> Settings:
    return _convert(given, _convert(variables, onto, ENVIRONMENT, spell=_variable), "an argument")


def definitions_file(settings: Settings) -> Path | None:
    """Where the definitions are: what the setting names, or `threadline.yaml` beside the store; None: nowhere."""
    if settings.definitions:
        path = Path(settings.definitions)
        if not path.exists():
            raise InvalidSetting(f"definitions: there is no {path}", hint="name a YAML file or a folder of them")
        return path
    beside = definitions_beside(settings)
    if beside.is_file():
        return beside
    # What looks as if it were read must be, or be told.
    if beside.is_symlink() or beside.exists():
        raise InvalidSetting(f"{beside} is not a file that can be read", hint=_NAME_IT)
    if (other := beside.with_suffix(".yml")).exists():
        raise InvalidSetting(f"{other} is not read: the name is {DEFINITIONS_FILE}", hint=_NAME_IT)
    return None


def definitions_beside(settings: Settings) -> Path:
    """Where definitions are looked for that no setting names."""
    # Beside a store that is elsewhere there is no folder; then it is the one where we are.
    return (Path() if "://" in settings.store else Path(settings.store).parent) / DEFINITIONS_FILE


def from_environment(name: str) -> str:
    """A secret that definitions name as ``env:NAME``; empty if it is not there."""
    return os.environ.get(name, "")


def definition_files(path: Path | None) -> list[Path]:
    """The YAML files at a path: itself, or those in the folder, in the order of their names."""
    if path is None or path.is_file():
        return [] if path is None else [path]
    return sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml") and file.is_file())


def _from_files(files: Iterable[Path]) -> Settings:
    """The defaults with what stands under ``settings:`` in these files. Raises `InvalidSetting` with every mistake."""
    problems: list[str] = []
    places: dict[str, str] = {}
    settings = Settings()
    for file in files:
        for name, (place, value) in _declared_in(file, places, problems).items():
            try:
                _check_names({name: value}, IN_FILES)
                if name in NOT_IN_FILES:
                    raise InvalidSetting(f"`{name}` says where this file is; set it in the environment instead")
                settings = _convert({name: value}, settings, IN_FILES, strict=True)
            except InvalidSetting as error:
                hint = f"; {error.hint}" if error.hint else ""
                problems.append(f"{place}: {error}{hint}")
    if problems:
        raise InvalidSetting("\n".join(problems))
    return settings


def _declared_in(file: Path, places: dict[str, str], problems: list[str]) -> dict[str, tuple[str, Any]]:
    """Name -> (place, value) of what stands under ``settings:`` in one file; all else is left to those who read it.

    ``places`` tells where each name stood before, in whichever file, and is told where these do.
    """
    try:
        loader = yaml.SafeLoader(file.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        sections = root.value if isinstance(root, yaml.MappingNode) else []
        nodes = [(key, value) for key, value in sections if key.value == SETTINGS_SECTION.name]
        node = nodes[0][1] if nodes else None
        body = None if node is None else loader.construct_document(node)
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{file}:1: the file cannot be read as UTF-8 text: {error}")
        return {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.append(f"{file}:{mark.line + 1 if mark else 1}: this is not YAML: {error.problem}")
        return {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.append(f"{file}:1: this is not YAML: {str(error).splitlines()[0]}")
        return {}
    _note_twice(file, [key for key, _ in nodes], {}, problems)
    if not isinstance(node, yaml.MappingNode) or body is None:
        if body is not None:
            place = f"{file}:{node.start_mark.line + 1 if node is not None else 1}"
            problems.append(f"{place}: `settings:` must be a mapping, not {type(body).__name__}")
        return {}
    keys = {str(key.value): key for key, _ in node.value}
    _note_twice(file, [key for key, _ in node.value], places, problems)
    return {name: (f"{file}:{key.start_mark.line + 1}", body.get(name)) for name, key in keys.items()}


def _note_twice(file: Path, keys: Iterable[yaml.Node], places: dict[str, str], problems: list[str]) -> None:
    """Note a name that stands twice: the last would be taken in silence."""
    for key in keys:
        place = f"{file}:{key.start_mark.line + 1}"
        if (before := places.setdefault(str(key.value), place)) is not place:
            problems.append(f"{place}: {key.value!r} is already set at {before}; keep one")


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    ours = [name for name in environ if name.startswith(PREFIX) and not name.startswith(_NOT_OURS)]
    names = [name for name in ours if name not in _OF_CLIENTS]
    settings = {name.removeprefix(PREFIX).lower(): environ[name] for name in names}
    _check_names(settings, ENVIRONMENT, _variable)
    return settings


def _check_names(names: Mapping[str, Any], origin: str, spell: Callable[[str], str] = str) -> None:
    for name in names:
        if name not in Settings.__struct_fields__:
            near = nearest(str(name), Settings.__struct_fields__)
            hint = f"did you mean {spell(near)!r}?" if near else "`threadline settings` lists all of them"
            raise InvalidSetting(f"{spell(name)} in {origin} is not a setting; {hint}")


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _convert(
    values: Mapping[str, Any], onto: Settings, origin: str, strict: bool = False, spell: Callable[[str], str] = str
) -> Settings:
    for name, value in values.items():
        try:
            parsed = msgspec.convert({name: value}, Settings, strict=strict)
        except msgspec.ValidationError as error:
            raise InvalidSetting(f"{spell(name)} in {origin}: {_expected(str(error), value)}") from None
        if isinstance(number := getattr(parsed, name), float) and not math.isfinite(number):
            raise InvalidSetting(f"{spell(name)} in {origin}: expected a finite number, not {number}")
        if name == "workspace" and not is_workspace(parsed.workspace):
            raise InvalidSetting(f"{spell(name)} in {origin}: a name has {WORKSPACE_FORM}")
        onto = msgspec.structs.replace(onto, **{name: getattr(parsed, name)})
    return _with_path(onto)


def _expected(message: str, value: Any) -> str:
    """What a value should be, in words. Only a number's is told: what should be text may be a secret."""
    if message.startswith("Expected `bool`"):
        return "write true or false"
    if message.startswith("Expected `str`, got"):
        return "expected a text; put it in quotes"
    for name, meaning in {"`int`": "a whole number", "`float`": "a number"}.items():
        if name in message:
            return f"expected {meaning}{_bounds(message, name)}, not {value!r:.40}"
    return f"expected a text{_bounds(message, '`str`')}"


def _bounds(message: str, name: str) -> str:
    return message.partition(name)[2].partition(" - at")[0].partition(", got")[0]


def _with_path(settings: Settings) -> Settings:
    """The embedded store may be named by a URL as well: ``sqlite:///shop.db``, from the root ``sqlite:////var/shop.db``."""
    if settings.store in IN_MEMORY:
        return msgspec.structs.replace(settings, store=IN_MEMORY[settings.store])
    if not settings.store.startswith(EMBEDDED):
        return settings
    path = settings.store.removeprefix(EMBEDDED)
    if not path:
        raise InvalidSetting(f"store: {settings.store!r} names no file; write it like {EMBEDDED}threadline.db")
    return msgspec.structs.replace(settings, store=path)
