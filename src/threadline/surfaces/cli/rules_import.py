"""``threadline rules import``: decision models, and rules of a document database, made into rules."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.capabilities.decide.rules.file_import import rules_of_files
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.surfaces.cli.session import Session, store_option, url_option, workspace_option
from threadline.surfaces.operation_calls import convert, shown


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--draft", is_flag=True, help="Write them into the store as drafts, instead of printing definitions.")
@store_option
@workspace_option
@url_option
@click.pass_obj
def import_(session: Session, files: tuple[Path, ...], draft: bool) -> None:
    """Make rules of JDM files of GoRules, and of JSON with RuleId, Conditions and Actions.

    Prints the section `rules` for a file of definitions, or writes drafts with --draft. They do nothing before a rule
    set names them, and drafts before they are activated. Of several versions of a rule the newest that is active is
    taken, for drafts the newest; the others are named.
    """
    rules, left_out = rules_of_files([(file.name, file.read_bytes()) for file in files], inactive=draft)
    for line in left_out:
        click.echo(line, err=True)
    contents = {rule.id: {key: value for key, value in rule.content.items() if key != "id"} for rule in rules}
    if not draft:
        click.echo(yaml_of({"rules": contents}, width=120), nl=False)
        return
    write = shown(session.composition.operations(), "cli")["rules_write"]
    for id, content in contents.items():
        del content["version"]
        written = session.run(write, convert(write, {"id": id, "rule": content}, strict=True))
        click.echo(f"{id}: version {written.version} is {written.state}")
