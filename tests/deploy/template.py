"""The template of deploy/aws, as it is written and as AWS translates it."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
PATH = ROOT / "deploy/aws/template.yaml"

Resource = dict[str, Any]


class _NoManagedPolicies:
    """The template names its policies by reference, so the translator has none of AWS's to look up."""

    def load(self) -> dict[str, str]:
        return {}


@cache
def _source() -> dict[str, Any]:
    return yaml_parse(PATH.read_text())


def source() -> dict[str, Any]:
    """The template as it is written."""
    return copy.deepcopy(_source())


def translated(template: dict[str, Any] | None = None) -> dict[str, Any]:
    """The same without SAM: what CloudFormation makes."""
    with patch.dict(os.environ, {"AWS_DEFAULT_REGION": "us-east-1"}):
        return transform(template or source(), {}, _NoManagedPolicies())


@cache
def resources() -> dict[str, Resource]:
    """Every resource that CloudFormation makes, by its name."""
    return translated()["Resources"]


def of_type(kind: str) -> dict[str, Resource]:
    """The properties of the resources of one type."""
    return {name: each.get("Properties", {}) for name, each in resources().items() if each["Type"] == kind}


def referred(value: Any) -> set[str]:
    """The resources and parameters that a value refers to by Ref and GetAtt."""
    if isinstance(value, list):
        return set().union(*map(referred, value))
    if not isinstance(value, dict):
        return set()
    names = set()
    for key, inner in value.items():
        if key == "Ref":
            names.add(inner)
        elif key == "Fn::GetAtt":
            names.add(inner.split(".")[0] if isinstance(inner, str) else inner[0])
        else:
            names |= referred(inner)
    return names


def statements() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every statement of a role's or a managed policy's permissions, with the name of its resource."""
    for name, properties in (of_type("AWS::IAM::Role") | of_type("AWS::IAM::ManagedPolicy")).items():
        documents = [each["PolicyDocument"] for each in properties.get("Policies", [])]
        documents += [properties["PolicyDocument"]] if "PolicyDocument" in properties else []
        for document in documents:
            for statement in document["Statement"]:
                yield name, statement.get("Fn::If", [None, statement])[1]


def as_list(value: Any) -> list[Any]:
    """IAM takes one or several."""
    return value if isinstance(value, list) else [value]
