"""The program: every command by name, loaded when it is called, and errors as a message with a hint."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import click
from rich.text import Text

from threadline.kernel.errors import InvalidDefinition, ThreadlineError
from threadline.kernel.suggestion import suggestion
from threadline.surfaces.cli.printing import terminal, visible, visible_lines
from threadline.surfaces.cli.session import Session
from threadline.surfaces.composition import Composition
from threadline.surfaces.operation_calls import shown

HERE = "threadline.surfaces.cli"
_OF_COMMANDS = frozenset({"--file", "-f", "--workspace", "-w", "--json"})
_QUOTED = re.compile(r"`(\w+)`")

COMMANDS = {
    "apply": ("apply", "apply", "Bring everybody up to changed definitions: check, show, fold again, refresh."),
    "backup": ("backup", "backup", "Copy the embedded store into one file, beside a server that writes."),
    "catalogue": (
        "inspection",
        "catalogue",
        "List what is in force: projections, policies, operations, identifier kinds.",
    ),
    "check": ("check", "check", "Check all definitions: every mistake, with file and line."),
    "demo": ("demo", "command", "Start a server on an empty file and send it a shop's real history."),
    "doctor": ("doctor", "doctor", "Check the store, its lock, the disk, the clock and the definitions."),
    "import": ("import_", "command", "Import a CSV, JSONL or Parquet file."),
    "keys": ("keys", "keys", "Create, list and revoke write keys and tokens."),
    "migrate": ("migrate", "migrate", "Make or update the tables of a store on a server."),
    "move": ("move", "move", "Move everything from one store into another, and verify it."),
    "refold": ("upkeep", "refold", "Derive everything again from the log, after definitions have changed."),
    "restore": ("backup", "restore", "Put a backup of the embedded store in its place."),
    "rules": ("rules", "rules", "List rules; `rules diff` shows what another version would have changed."),
    "serve": ("serve", "serve", "Run the HTTP server."),
    "settings": ("inspection", "settings", "List all settings and what they are now."),
    "verify": ("upkeep", "verify", "Check that the store is whole and that what is derived equals the log."),
    "what-if": ("what_if", "what_if", "Try a rule or definitions on history, in a sandbox."),
    "work": ("work", "work", "Fire timers and send what is due, without an HTTP server."),
}
"""Name -> module, command in it, short help. A name here wins over an operation of that name."""


class Program(click.Group):
    """Commands that are written, and one for each operation that the command line shows."""

    def list_commands(self, context: click.Context) -> list[str]:
        """All names, in the order of the alphabet."""
        return sorted({*COMMANDS, *_operation_names(context)})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of a name."""
        if name in COMMANDS:
            module, attribute, _ = COMMANDS[name]
            command: click.Command = getattr(import_module(f"{HERE}.{module}"), attribute)
            return command
        operation = _operation_names(context).get(name)
        if operation is None:
            return None
        from threadline.surfaces.cli.rendering import render

        return render(shown(_session(context).composition.operations(), "cli")[operation])

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; for a name that is none the usage error names the nearest."""
        if arguments and not arguments[0].startswith("-") and self.get_command(context, arguments[0]) is None:
            known = self.list_commands(context)
            hint = suggestion(arguments[0].replace("_", "-"), known, "`threadline --help` lists them.")
            context.fail(f"No such command {arguments[0]!r}; {hint}")
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The help in two parts, without loading the commands."""
        operations = shown(_session(context).composition.operations(), "cli")
        rows = [(command_name(name), each.summary) for name, each in operations.items()]
        parts = {
            "Ask and change": [row for row in rows if row[0] not in COMMANDS],
            "Run and look after": [(name, text) for name, (_, _, text) in COMMANDS.items()],
        }
        for title, lines in parts.items():
            with formatter.section(title):
                formatter.write_dl(sorted(lines))


def command_name(operation: str) -> str:
    """An operation's name on the command line."""
    return operation.replace("_", "-")


def _session(context: click.Context) -> Session:
    session = context.find_root().obj
    assert isinstance(session, Session)
    return session


def _operation_names(context: click.Context) -> dict[str, str]:
    return {command_name(name): name for name in shown(_session(context).composition.operations(), "cli")}


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from threadline.surfaces.http.health import package_version

        click.echo(f"threadline {package_version()}")
        context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.option("--traceback", is_flag=True, help="Show where a fault of the program itself happened.")
@click.pass_obj
def threadline(session: Session, traceback: bool) -> None:
    """One thread of events per person: recorded exactly once, read at any instant.

    Commands that read work beside a running server; those that write need the store to themselves.
    """
    session.traceback = traceback


def run(composition: Composition, arguments: Sequence[str]) -> int:
    """Run the program and answer its exit code. What went wrong stands on stderr, never as a traceback."""
    try:
        return _run(Session(composition), composition, arguments)
    except BrokenPipeError:
        # Whoever read it has seen enough. Like click and rich, which see most of these: what was not told may matter.
        _discard_output()
        return 1


def _run(session: Session, composition: Composition, arguments: Sequence[str]) -> int:
    try:
        # Commands answer nothing; an exit code is what click answers in their place.
        return threadline.main(list(arguments), "threadline", standalone_mode=False, obj=session) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        _with_place(error).show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        raise
    except InvalidDefinition as error:
        return _tell(visible_lines(str(error)), _in_commands(error.hint, composition))
    except ThreadlineError as error:
        return _tell(visible(str(error)), _in_commands(error.hint, composition))
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()  # it takes no more: a full disk, for example
        return _tell(visible(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"), "")
    except Exception as error:
        if session.traceback:
            raise
        fault = visible(f"a fault of the program itself: {type(error).__name__}: {error}")
        return _tell(fault, "run it again with --traceback")


def _with_place(error: click.ClickException) -> click.ClickException:
    """Who gives an option before the command that takes it is told where it belongs."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None or error.option_name not in _OF_COMMANDS:
        return error
    if not isinstance(error.ctx.command, click.Group):
        return error
    place = f"{error.ctx.command_path} COMMAND {error.option_name} ..."
    return click.UsageError(f"{error.option_name} follows the command: {place}", error.ctx)


def _discard_output() -> None:
    """Write nothing to the output any more, not even what is left of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_commands(hint: str, composition: Composition) -> str:
    """A hint that names operations, in the words of the command line."""
    names = shown(composition.operations(), "cli")
    return _QUOTED.sub(lambda found: f"`{command_name(found[1])}`" if found[1] in names else found[0], hint)


def _tell(message: str, hint: str) -> int:
    told = terminal(stderr=True, soft_wrap=True)
    told.print(Text.assemble(("Error:", "bold red"), " ", message))
    if hint:
        told.print(Text.assemble(("Hint:", "dim"), " ", visible(hint)))
    return 1
