"""What every command shares: which store, how to open it, where to print."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, cast
from warnings import catch_warnings, simplefilter

import click
import msgspec
from rich.console import Console

from threadline.engine.context import Caller, Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidSetting, StoreBusy
from threadline.kernel.operation import Operation
from threadline.settings import Settings
from threadline.surfaces.cli.printing import terminal
from threadline.surfaces.composition import Composition
from threadline.surfaces.definition_checks import settings_in_force
from threadline.surfaces.operation_calls import run, stale_note
from threadline.surfaces.python.call import StaleAnswer, call_of

if TYPE_CHECKING:
    from threadline.surfaces.python.client import Client

PIPED_COLUMNS = 120
SOURCE = "cli"
"""The source of events that are recorded through the command line."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _console() -> Console:
    made = terminal()
    # In a file or a pipe there is no width to keep to, unless COLUMNS says so: 80 is what rich takes for want of one.
    if not made.is_terminal and not os.environ.get("COLUMNS"):
        made.width = PIPED_COLUMNS
    return made


@dataclass
class Session:
    """One run of the program. Commands get it by ``@click.pass_obj``."""

    composition: Composition
    given: dict[str, Any] = field(default_factory=dict)
    """Settings from the command line: they beat the environment and `threadline.yaml`."""
    console: Console = field(default_factory=_console)
    url: str = ""
    """The server that is asked, where the command line names one."""

    def client(self) -> Client | None:
        """The server to ask; None where the store is opened here. ``--file`` wins over THREADLINE_URL."""
        url = self.url or ("" if "store" in self.given else os.environ.get("THREADLINE_URL", ""))
        if not url:
            return None
        from threadline.surfaces.python.client import Client

        return Client(url, os.environ.get("THREADLINE_TOKEN", "") or _token_of(url))

    def refuse_server(self) -> None:
        """Raise `InvalidSetting` where a server is named, for a command that would quietly work on another store."""
        if "store" in self.given and not self.url:
            return
        named = "--url" if self.url else "THREADLINE_URL" if os.environ.get("THREADLINE_URL") else ""
        if named:
            raise InvalidSetting(
                f"this command works on the store itself, not through a server, which {named} names",
                hint="Run it where the store is, and name the store: --file PATH.",
            )

    def run(self, operation: Operation, params: Any) -> Any:
        """The answer of an operation, from the server or from the store."""
        client = self.client()
        if client is not None:
            with client, catch_warnings(record=True) as warned:
                simplefilter("ignore")
                simplefilter("always", StaleAnswer)
                # What could not be read as an event has the outcome of its own there too.
                result = client.call(call_of(operation), msgspec.to_builtins(params, enc_hook=str))
            for warning in warned:
                click.echo(f"{warning.message}.", err=True)
            return result
        try:
            with self.engine(readonly=operation.method == "GET") as engine:
                # It was found among what ships, before there were definitions: they shape some operations.
                declared = engine.catalogue.operation(operation.name)
                result = run(declared, self.context(engine), params)
                if stale := stale_note(declared, self.context(engine), params):
                    click.echo(f"Older than the definitions: {stale}.", err=True)
                return result
        except StoreBusy as error:
            raise StoreBusy(str(error), hint=self.beside_a_server()) from None

    def beside_a_server(self) -> str:
        """What can be done where another process has the store."""
        settings = self.settings()
        return (
            f"If it is a server, ask it: add --url http://{settings.host}:{settings.port} and set THREADLINE_TOKEN. "
            "Otherwise stop it first; what only reads can work beside it."
        )

    def settings(self) -> Settings:
        """The settings in force. Raises `InvalidSetting`, and `InvalidDefinition` with all that is wrong in files."""
        return settings_in_force(self.given, self.composition.catalogue)

    def engine(self, *, readonly: bool = False) -> AbstractContextManager[Engine]:
        """The engine on the chosen store, closed afterwards. A reader works beside a running server."""
        return closing(self.composition.open_engine(self.settings(), readonly))

    def context(self, engine: Engine) -> Context:
        """What an operation of the chosen workspace is handed, now."""
        caller = Caller(user_name(), "os_user", "cli")
        return Context(engine, self.settings().workspace, engine.now(), SOURCE, caller=caller)

    def opener(self) -> Callable[[], Engine]:
        """What opens the chosen store for reading in another process; it can be sent there."""
        return partial(self.composition.open_engine, self.settings(), True)


def store_option(command: Decorated) -> Decorated:
    """Add ``--file`` to a command. It goes into the session, not into the command's parameters."""
    return _option(
        "store", "--file", "-f", metavar="PATH", help="The store; default: THREADLINE_STORE or threadline.db."
    )(command)


def own_store_option(command: Decorated) -> Decorated:
    """Add ``--file`` to a command that works on the store itself. It refuses to run where a server is named."""

    @wraps(command)
    def refusing(*given: Any, **named: Any) -> Any:
        click.get_current_context().find_root().obj.refuse_server()
        return command(*given, **named)

    return store_option(_hidden_url(cast(Decorated, refusing)))


def _hidden_url(command: Decorated) -> Decorated:
    return click.option("--url", expose_value=False, hidden=True, callback=_keep_url)(command)


def _keep_url(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.find_root().obj.url = value


def workspace_option(command: Decorated) -> Decorated:
    """Add ``--workspace`` to a command, likewise."""
    return _option("workspace", "--workspace", "-w", metavar="NAME", help="The workspace; default: default.")(command)


def lake_option(command: Decorated) -> Decorated:
    """Add ``--lake`` to a command, likewise."""
    return _option("lake", "--lake", metavar="URL", help="A folder, or s3://bucket/prefix; default: THREADLINE_LAKE.")(
        command
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
"""Adds ``--json`` to a command."""


def url_option(command: Decorated) -> Decorated:
    """Add ``--url`` to a command, likewise."""
    return click.option(
        "--url",
        metavar="URL",
        expose_value=False,
        callback=_keep_url,
        help="Ask this server instead of a store; default: THREADLINE_URL. THREADLINE_TOKEN is its token.",
    )(command)


def shared_parameters() -> list[click.Option]:
    """All of them as parameters, for commands that are made and not written."""

    @url_option
    @workspace_option
    @store_option
    @json_option
    def bearer() -> None: ...

    return [parameter for parameter in click.command()(bearer).params if isinstance(parameter, click.Option)]


def _option(setting: str, *names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.find_root().obj.given[setting] = value

    return click.option(*names, expose_value=False, callback=keep, **attributes)


def user_name() -> str:
    """Whoever runs the program; empty where the system has no name for them, as in a container with a bare number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _token_of(url: str) -> str:
    """The token that the system's keyring has for a server: ``keyring set threadline URL`` puts it there."""
    if find_spec("keyring") is None:
        return ""
    keyring = import_module("keyring")
    return keyring.get_password("threadline", url) or ""
