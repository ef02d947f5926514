"""From a JDM file to a rule: the decision model as the body, and fields of the event as its inputs."""

from __future__ import annotations

from typing import Any

import msgspec

from threadline.capabilities.rules.definition import Rule, rule_of_json
from threadline.capabilities.rules.document_import import rule_id
from threadline.capabilities.rules.model_reading import DROPPED


def rule_of_model(name: str, model: dict[str, Any]) -> Rule:
    """The rule of a file, named after it. Raises `InvalidDefinition` that names the file and the place in it.

    Where the file says what goes in, by a schema or by a case that it was tried on, each of these is a property of the
    event; otherwise the model gets all of them.
    """
    body = {key: value for key, value in model.items() if key not in DROPPED}
    inputs = {each: f"event.properties.{each}" for each in _names(model) if "." not in each}
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
    return [each for each in value if type(each) is dict] if type(value) is list else []
