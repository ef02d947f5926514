"""From files of other systems to rules: decision models, and rules as a document database keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.decide.rules.definition import Rule, rule_of_json
from threadline.capabilities.decide.rules.document_import import Document, rule_id, rule_of_document, snake
from threadline.capabilities.decide.rules.model_reading import DROPPED
from threadline.kernel.errors import InvalidDefinition


def rule_of_model(name: str, model: dict[str, Any]) -> Rule:
    """The rule of a file, named after it. Raises `InvalidDefinition` that names the file and the place in it.

    Where the file says what goes in, by a schema or by a case that it was tried on, each of these is a property of the
    event; otherwise the model gets all of them.
    """
    body = {key: value for key, value in model.items() if key not in DROPPED}
    inputs = {input_name: f"event.properties.{input_name}" for input_name in _names(model) if "." not in input_name}
    if inputs and "inputs" not in body:
        body["inputs"] = inputs
    title = name.removesuffix(".json")
    return rule_of_json(rule_id(title), {"version": 1, "name": title, "model": body}, name)


def _names(model: dict[str, Any]) -> list[str]:
    """What goes in, as far as the file says so."""
    for node in _dicts(model.get("nodes")):
        content = node.get("content")
        schema = content.get("schema") if node.get("type") == "inputNode" and type(content) is dict else None
        try:
            described = msgspec.json.decode(schema) if type(schema) is str and schema else schema
        except msgspec.DecodeError:
            continue
        properties = described.get("properties") if type(described) is dict else None
        if type(properties) is dict and properties:
            return list(properties)
    cases = (case.get("input") for case in _dicts(model.get("tests")))
    return list(dict.fromkeys(name for case in cases if type(case) is dict for name in case))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if type(item) is dict] if type(value) is list else []


class Imported(NamedTuple):
    """What some files hold."""

    rules: list[Rule]
    left_out: list[str]
    """Other versions, each with the reason."""


def rules_of_files(files: Iterable[tuple[str, bytes]], *, inactive: bool = False) -> Imported:
    """The newest active version of each rule; with ``inactive`` the newest. Raises `InvalidDefinition`."""
    versions: dict[str, dict[int, Document]] = {}
    for entry in (document for name, text in files for document in _documents(name, text)):
        rule = entry.rule
        if versions.setdefault(rule.id, {}).setdefault(rule.version, entry) is not entry:
            raise InvalidDefinition(f"there are two rules {rule.id!r} of version {rule.version}; rename one")
    imported = Imported([], [])
    for id, documents in versions.items():
        newest = max((number for number, document in documents.items() if document.is_active or inactive), default=0)
        if newest:
            imported.rules.append(documents[newest].rule)
        for number in sorted(documents.keys() - {newest}):
            reason = f"version {newest} is newer" if 0 < number < newest else "it is not active"
            imported.left_out.append(f"{id} version {number} is left out: {reason}")
    return imported


def _documents(name: str, text: bytes) -> Iterator[Document]:
    """A file is a decision model, a rule, a list of rules, or a rule on each line."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        try:
            value = [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
        except msgspec.DecodeError:
            raise InvalidDefinition(f"{name}: this is not JSON: {error}") from None
    if type(value) is dict and "nodes" in value:
        yield Document(rule_of_model(name, value), True)
        return
    for number, item in enumerate(value if type(value) is list else [value], 1):
        label = f"{name}[{number}]" if type(value) is list else name
        if type(item) is not dict or not {"rule_id", "conditions"} <= set(map(snake, item)):
            wanted = "neither a decision model with `nodes` nor a rule with `RuleId` and `Conditions`"
            raise InvalidDefinition(f"{label}: {wanted}")
        yield rule_of_document(label, item)
