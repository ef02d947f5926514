"""What a segment is made of, read from the section ``segments``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import yaml

from threadline.capabilities.conditions import Conditions, read_yaml
from threadline.capabilities.conditions.fields import EVENT
from threadline.capabilities.conditions.schema import CONDITION, DEFS
from threadline.capabilities.definitions import Definitions, Document
from threadline.capabilities.segments.projection import NAME
from threadline.kernel.canonical import canonical_json
from threadline.kernel.limits import SEGMENTS_MAX
from threadline.kernel.policy import Read
from threadline.kernel.section import Section

SECTION = Section(
    name="segments",
    schema={
        "type": "object",
        "description": "Segments by name: the people of whom `when` is true.",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "maxProperties": SEGMENTS_MAX,
        "additionalProperties": {
            "type": "object",
            "properties": {"description": {"type": "string"}, "when": CONDITION},
            "required": ["when"],
            "additionalProperties": False,
        },
    },
    defs=DEFS,
)


@dataclass(frozen=True)
class Segment:
    """A declared segment."""

    name: str
    conditions: Conditions
    description: str = ""
    place: str = field(default="", compare=False)
    """File and line of the declaration, for messages."""

    @cached_property
    def version(self) -> str:
        """A hash of the conditions: another one means that members are to be looked at again."""
        return hashlib.blake2b(canonical_json(self.conditions.plain), digest_size=8).hexdigest()

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that decide who belongs."""
        return tuple(Read(name, path, f"{self.place}: segment {self.name!r}") for name, path in self.conditions.reads)


def read_segments(definitions: Definitions) -> tuple[Segment, ...] | None:
    """The declared segments by name; None if no file has the section. Problems are noted in the documents."""
    found: dict[str, Segment] = {}
    sections = definitions.section(SECTION.name)
    for document, _, value in sections:
        for name, (key, node) in document.mapping(value, "`segments`").items():
            if not NAME.fullmatch(name):
                text = f"{name!r} is not a valid segment name; use lower-case letters, digits and _, like big_spenders"
                document.fail(key, text)
            elif name in found:
                document.fail(key, f"segment {name!r} is already declared at {found[name].place}; keep one")
            else:
                segment = _segment(document, name, key, node)
                if segment is not None:
                    found[name] = segment
    if len(found) > SEGMENTS_MAX:
        definitions.problems.append(
            f"{len(found)} segments are declared, at most {SEGMENTS_MAX} are allowed; remove some"
        )
    return tuple(found[name] for name in sorted(found)) if sections else None


def _segment(document: Document, name: str, key: yaml.Node, node: yaml.Node) -> Segment | None:
    keys = document.mapping(node, f"segment {name!r}")
    document.known(keys, ("description", "when"), f"segment {name!r}")
    description = document.text(keys["description"][1], "`description`") if "description" in keys else ""
    if "when" not in keys:
        document.fail(key, f"segment {name!r} needs `when`: the conditions under which somebody belongs to it")
        return None
    when = keys["when"][1]
    tree = read_yaml(document, when)
    if tree is None:
        return None
    conditions = Conditions(tree)
    for path in conditions.fields:
        if path[0] == EVENT:
            document.fail(when, f"a segment depends on what is known of a person, not on one event: {'.'.join(path)}")
        elif path[0] == SECTION.name:
            document.fail(
                when, "a segment cannot depend on other segments; repeat the conditions, or share them by a YAML anchor"
            )
    return Segment(name, conditions, description, document.place(key))
