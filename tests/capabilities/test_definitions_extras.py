"""What a definition needs and is not installed is named when the definition is read, not when it is first used."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator

import pytest

from tests.house.source import ROOT, imports, sources
from threadline.app import catalogue_of
from threadline.kernel.errors import InvalidDefinition

EVERYTHING = {
    "css_inline": "mail: {senders: {s: {from: a@s.example}}, templates: {h: {subject: Hi, sender: s, html: <p>x</p>}}}",
    "mrml": "mail: {senders: {s: {from: a@s.example}}, templates: {m: {subject: Hi, sender: s, mjml: <mjml></mjml>}}}",
    "dkim": "mail: {senders: {signed: {from: a@s.example, dkim: {selector: s1, key_file: key.pem}}}}",
    "jsonschema_rs": "event_schemas: {page: {}}",
    "re2": "segments: {s: {when: {field: traits.plan, regex: g.ld}}}",
    "zen": """
rules:
  fee:
    version: 1
    model:
      nodes: [{id: in, type: inputNode, name: in}, {id: out, type: outputNode, name: out}]
      edges: [{id: a, sourceId: in, targetId: out}]
rule_sets: {fees: {events: [parcel], rules: [fee]}}
""",
}
"""Module -> the shortest definition that needs it. They have no name in common, so they can stand in one file."""


def optional() -> Iterator[str]:
    """The modules that capabilities import and only an extra installs."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    always = {re.split(r"[^\w.-]", name)[0].replace("-", "_") for name in declared["dependencies"]}
    for source in sources():
        if source.path.startswith("src/threadline/capabilities/"):
            for name in {name.partition(".")[0] for name in imports(source)}:
                if name not in sys.stdlib_module_names and name not in always | {"threadline", "yaml", "msgspec"}:
                    yield name


def test_each_module_that_a_capability_imports_from_an_extra_has_its_definition_here() -> None:
    assert set(optional()) == set(EVERYTHING)


@pytest.mark.parametrize("module", EVERYTHING)
def test_a_definition_is_read_where_what_it_needs_is_installed(module: str) -> None:
    catalogue_of([("shop.yaml", EVERYTHING[module])])


@pytest.mark.parametrize("module", EVERYTHING)
def test_a_definition_names_the_extra_that_is_not_installed(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidDefinition, match=r"shop\.yaml:\d+: .*install its extra .*: pip install '\.\[\w+\]'"):
        catalogue_of([("shop.yaml", EVERYTHING[module])])
