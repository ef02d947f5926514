"""``threadline rules import``: decision models made into rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from threadline.capabilities.rules.model_import import rule_of_file
from threadline.kernel.errors import InvalidDefinition
from threadline.surfaces.cli.session import Session, store_option, workspace_option
from threadline.surfaces.operation_calls import call


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--draft", is_flag=True, help="Write them into the store as drafts, instead of printing definitions.")
@store_option
@workspace_option
@click.pass_obj
def import_(session: Session, files: tuple[Path, ...], draft: bool) -> None:
    """Make rules of decision models (JDM files of GoRules), each named after its file.

    Prints the section `rules` for a file of definitions, or writes drafts with --draft. They do nothing before a rule
    set names them, and drafts before they are activated.
    """
    rules = [rule_of_file(file.name, file.read_bytes()) for file in files]
    if len({rule.id for rule in rules}) < len(rules):
        raise InvalidDefinition("two of the files would make rules with the same id; rename one")
    contents = {rule.id: {key: each for key, each in rule.content.items() if key != "id"} for rule in rules}
    if not draft:
        click.echo(yaml.safe_dump({"rules": contents}, sort_keys=False, allow_unicode=True, width=120), nl=False)
        return
    with session.engine() as engine:
        write = engine.catalogue.operation("rules_write")
        for id, content in contents.items():
            del content["version"]
            values = {"id": id, "rule": content}
            said: Any = msgspec.to_builtins(call(write, session.context(engine), values, strict=True))
            click.echo(f"{id}: version {said['version']} is {said['state']}")
