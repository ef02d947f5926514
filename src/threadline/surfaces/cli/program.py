"""The program: every command by name, loaded when it is called, and errors as a message with a hint."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

import click

from threadline.kernel.errors import InvalidDefinition, ThreadlineError
from threadline.kernel.suggestion import suggestion
from threadline.surfaces.cli import listing
from threadline.surfaces.cli.listing import Listing, command_name

if TYPE_CHECKING:
    from threadline.kernel.operation import Operation
    from threadline.surfaces.composition import Composition

HERE = "threadline.surfaces.cli"
_OF_COMMANDS = frozenset({"--file", "-f", "--workspace", "-w", "--json"})
_START = "threadline.start"
_QUOTED = re.compile(r"`(\w+)`")

COMMANDS = {
    "accept-loss": ("accept_loss", "accept_loss", "Accept that a store has lost events, so that it opens again."),
    "apply": ("apply", "apply", "Put changed definitions in force and recalculate everyone."),
    "backup": ("backup", "backup", "Copy the embedded store into one file, beside a server that writes."),
    "catalogue": ("inspection", "catalogue", "List what is in force: projections, policies, operations, identifiers."),
    "check": ("check", "check", "Check all definitions: every mistake, with file and line."),
    "demo": ("demo", "command", "Start a server on an empty file and send it a shop's real history."),
    "definitions delete": ("definitions", "delete", "Delete a definition that is made by hand."),
    "definitions export": ("definitions", "export", "Write what is made by hand into a file of definitions."),
    "doctor": ("doctor", "doctor", "Check the store, its lock, the disk, the clock and the definitions."),
    "erasures apply": ("erasures", "apply", "Repeat in a restored store the erasures that its ledger lists."),
    "erasures export": ("erasures", "export", "Add the ledger of erasures to a file, for restored backups."),
    "erasures resume": ("erasures", "resume", "Finish every erasure that was interrupted."),
    "events consumers": (
        "consumers",
        "consumers",
        "List the background readers of the feed, and how far each has come.",
    ),
    "events rewind": ("consumers", "rewind_command", "Move a background reader of the feed to another position."),
    "feedback receive": ("receive", "receive", "Take mails that come back, from a pipe, a Maildir, LMTP, SMTP or SQS."),
    "iceberg compact": ("iceberg", "compact", "Join small files of the Iceberg tables, and delete replaced ones."),
    "iceberg status": ("iceberg", "status", "Show how far the Iceberg tables have come."),
    "iceberg sync": ("iceberg", "sync", "Bring the lake and its Iceberg tables up to the end of the log."),
    "import": ("import_", "command", "Import a CSV, JSONL or Parquet file."),
    "jobs watch": ("jobs", "watch", "Show how far a job has come, until it has ended."),
    "journeys show": ("journeys", "show", "Show a journey, drawn, with the people at each step."),
    "journeys what-if": ("journeys", "what_if", "Try journeys on history: who would have got what, and when."),
    "lake compact": ("lake", "compact", "Put small files of the lake together."),
    "lake curate": ("sql", "curate", "Write the curated tables into the lake."),
    "lake refold": ("lake_refold", "refold", "Recalculate everybody from the lake, with DuckDB or Spark."),
    "lake status": ("lake", "status", "Show how far the lake has come, and how far it is behind."),
    "lake sync": ("lake", "sync", "Write new events into the lake, once or continuously."),
    "lake verify": ("lake", "verify", "Compare every file of the lake with the log."),
    "lake warehouse": (
        "sql",
        "warehouse",
        "Print SQL that loads the curated tables into a warehouse, or sources for dbt.",
    ),
    "mcp": ("mcp", "mcp", "Serve tools for AI agents on standard input and output."),
    "migrate": ("migrate", "migrate", "Make or update the tables of a store on a server."),
    "move": ("move", "move", "Move everything from one store into another, and verify it."),
    "people erase": ("erasures", "erase", "Erase a person for good, or count what that would remove."),
    "people export": ("export", "export", "Write everything that is stored about a person into one archive."),
    "refold": ("upkeep", "refold", "Recalculate everyone's data from the log."),
    "repair": ("repair", "repair", "Replace damaged events by copies from a backup or another store."),
    "restore": ("backup", "restore", "Put a backup of the embedded store in its place."),
    "rules diff": ("rules", "diff", "Show what another version of a rule would have changed."),
    "rules import": ("rules_import", "import_", "Make rules of decision models (JDM files of GoRules)."),
    "serve": ("serve", "serve", "Run the HTTP server."),
    "settings": ("inspection", "settings", "List all settings and what they are now."),
    "sql": ("sql", "sql", "Answer an SQL query over the lake and what is newer in the store."),
    "suppression export": ("suppression", "export", "Write all suppressed addresses as CSV."),
    "suppression import": ("suppression", "import_", "Suppress the addresses of a CSV file."),
    "verify": ("upkeep", "verify", "Check that the store is whole and that what is derived equals the log."),
    "what-if run": ("what_if", "what_if", "Try a rule or definitions on history, in a sandbox."),
    "work": ("work", "work", "Fire timers and send what is due, without an HTTP server."),
}
"""Name, after that of its group -> module, command in it, short help. It wins over an operation of that name."""

GROUPS = {
    "iceberg": "The lake as Iceberg tables.",
    "lake": "Every event as Parquet files, and tables made from them.",
}
"""Groups in which there are no operations, and what they are for."""


SECTIONS = {
    "Begin": ("demo", "serve", "check", "apply", "person"),
    "Events": ("record", "import", "events", "rejected", "keys"),
    "People": (
        "people",
        "quarantine",
        "features",
        "segments",
        "interests",
        "memory",
        "streaks",
        "points",
        "leaderboards",
    ),
    "Decisions": ("rules", "rule-sets", "decisions", "definitions", "what-if"),
    "Messages": (
        "mail",
        "broadcasts",
        "journeys",
        "alerts",
        "consent",
        "suppression",
        "feedback",
        "inbox",
        "messages",
    ),
    "Analytics": ("analytics", "search", "sql", "catalogue"),
    "Data out": ("webhooks", "exports", "lake", "iceberg", "effects", "mcp"),
}
"""Heading of the help -> groups and commands under it, in this order; `RUN` has all others."""
RUN = "Operate"


class Commands(click.Group):
    """The commands that are written and those made of operations: of one group, or beside the groups."""

    noun = ""
    """Of their group; empty for those beside the groups."""

    def list_commands(self, context: click.Context) -> list[str]:
        """All names, in the order of the alphabet."""
        return sorted(self.summaries(context))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of a name, loaded now."""
        path = f"{self.noun} {name}".strip()
        if path in COMMANDS:
            _begin(context)
            module, attribute, _ = COMMANDS[path]
            command: click.Command = getattr(import_module(f"{HERE}.{module}"), attribute)
            return command
        operation = next((o for o in _start(context).operations if command_name(o) == path), None)
        if operation is None:
            return None
        _begin(context)
        from threadline.surfaces.cli.rendering import render

        return render(operation)

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; for a name that is none the usage error names the nearest."""
        if arguments and not arguments[0].startswith("-") and self.get_command(context, arguments[0]) is None:
            known = self.list_commands(context)
            hint = suggestion(arguments[0].replace("_", "-"), known, f"`{context.command_path} --help` lists them.")
            context.fail(f"No such command {arguments[0]!r}; {hint}")
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, without loading the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self.summaries(context).items()))

    def summaries(self, context: click.Context) -> dict[str, str]:
        """What each command does, in a line, by name."""
        named = _start(context).listing.commands | {path: summary for path, (_, _, summary) in COMMANDS.items()}
        parts = {path.rpartition(" "): summary for path, summary in named.items()}
        return {name: summary for (group, _, name), summary in parts.items() if group == self.noun}


class Program(Commands):
    """The whole: groups of commands, and the few that are in none."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command or the group of a name."""
        summary = _groups(context).get(name)
        if summary is None:
            return super().get_command(context, name)
        made = Commands(name, help=summary)
        made.noun = name
        return made

    def list_commands(self, context: click.Context) -> list[str]:
        """All names, those of groups as well."""
        return sorted({*self.summaries(context), *_groups(context)})

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands and groups by what people do, the first ones first."""
        groups = _groups(context)
        lines = self.summaries(context) | {f"{name} …": summary for name, summary in groups.items()}
        placed = {
            heading: [f"{name} …" if name in groups else name for name in names] for heading, names in SECTIONS.items()
        }
        placed[RUN] = sorted(set(lines).difference(*placed.values()))
        for heading, names in placed.items():
            with formatter.section(heading):
                formatter.write_dl([(name, lines[name]) for name in names if name in lines])
        formatter.write_paragraph()
        formatter.write_text("`threadline GROUP --help` lists the commands of a group, which are marked by …")


class Start:
    """What the program begins with. What its commands need is imported once one of them is called."""

    def __init__(self, compose: Callable[[], Composition]) -> None:
        self._compose = compose
        self.traceback = False

    @cached_property
    def composition(self) -> Composition:
        """What opens engines."""
        try:
            return self._compose()
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None  # nothing was begun that a word would have to be said about

    @cached_property
    def operations(self) -> list[Operation]:
        """The operations that are commands."""
        return [operation for operation in self.composition.operations() if "cli" in operation.shown_on]

    @cached_property
    def listing(self) -> Listing:
        """Their names and what they do: as it is written down for what ships, if nothing else is installed."""
        return listing.shipped() or listing.listed(self.operations)


def _start(context: click.Context) -> Start:
    root = context.find_root()
    start: Start = root.meta.setdefault(_START, root.obj)  # before a session takes its place
    return start


def _begin(context: click.Context) -> None:
    """Make the session that a command gets by ``@click.pass_obj``; a list of commands needs none."""
    if isinstance(context.obj, Start):
        from threadline.surfaces.cli.session import Session

        session = Session(_start(context).composition)
        above: click.Context | None = context
        while above is not None:
            above.obj, above = session, above.parent


def _groups(context: click.Context) -> dict[str, str]:
    return GROUPS | _start(context).listing.groups


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from threadline.surfaces.version import package_version

        click.echo(f"threadline {package_version()}")
        context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.option("--traceback", is_flag=True, help="Show where a fault of the program itself happened.")
@click.pass_context
def threadline(context: click.Context, traceback: bool) -> None:
    """One thread of events per person: recorded exactly once, read at any instant.

    Commands that read work beside a running server; those that write need the store to themselves.
    """
    _start(context).traceback = traceback


def run(compose: Callable[[], Composition], arguments: Sequence[str]) -> int:
    """Run the program and answer its exit code. What went wrong stands on stderr, never as a traceback.

    ``compose`` makes what opens engines, once a command needs it.
    """
    try:
        return _run(Start(compose), arguments)
    except BrokenPipeError:
        # Whoever read it has seen enough. Like click and rich, which see most of these: what was not told may matter.
        _discard_output()
        return 1


def _run(start: Start, arguments: Sequence[str]) -> int:
    as_json = "--json" in arguments
    try:
        # Commands answer nothing; an exit code is what click answers in their place.
        return threadline.main(list(arguments), "threadline", standalone_mode=False, obj=start) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        if as_json:
            _show_json("usage", error.format_message(), "")
        else:
            _with_place(error).show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        raise
    except ThreadlineError as error:
        hint = _in_commands(error.hint, start)
        if as_json:
            return _show_json(error.code, str(error), hint)
        return _tell(str(error), hint, lines=isinstance(error, InvalidDefinition))
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()  # it takes no more: a full disk, for example
        message = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        return _show_json("failed", message, "") if as_json else _tell(message, "")
    except Exception as error:
        if start.traceback:
            raise
        fault = f"a fault of the program itself: {type(error).__name__}: {error}"
        hint = "run it again with --traceback"
        return _show_json("internal", fault, hint) if as_json else _tell(fault, hint)


def _with_place(error: click.ClickException) -> click.ClickException:
    """Who gives an option before the command that takes it is told where it belongs."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None or error.option_name not in _OF_COMMANDS:
        return error
    if not isinstance(error.ctx.command, click.Group):
        return error
    usage = f"{error.ctx.command_path} COMMAND {error.option_name} ..."
    return click.UsageError(f"{error.option_name} follows the command: {usage}", error.ctx)


def _discard_output() -> None:
    """Write nothing to the output any more, not even what is left of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_commands(hint: str, start: Start) -> str:
    """A hint that names operations, in the words of the command line."""
    if _QUOTED.search(hint) is None:
        return hint
    names = {operation.name: operation for operation in start.operations}
    return _QUOTED.sub(
        lambda match: f"`threadline {command_name(names[match[1]])}`" if match[1] in names else match[0], hint
    )


def _tell(message: str, hint: str, *, lines: bool = False) -> int:
    from rich.text import Text

    from threadline.surfaces.cli.printing import terminal, visible, visible_lines

    console = terminal(stderr=True, soft_wrap=True)
    console.print(Text.assemble(("Error:", "bold red"), " ", (visible_lines if lines else visible)(message)))
    if hint:
        console.print(Text.assemble(("Hint:", "dim"), " ", visible(hint)))
    return 1


def _show_json(code: str, message: str, hint: str) -> int:
    """The error on stderr, in the words of a problem document."""
    from threadline.surfaces.cli.printing import json_of

    click.echo(json_of({"code": code, "detail": message, **({"hint": hint} if hint else {})}), err=True)
    return 1
