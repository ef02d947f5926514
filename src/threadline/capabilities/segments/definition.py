"""What a segment is made of, read from the section ``segments``."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.conditions import Conditions
from threadline.capabilities.conditions.fields import viewed
from threadline.capabilities.conditions.forms import WHEN_FORM
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.definitions.declaring import Given, Named, Problems, struct
from threadline.capabilities.segments.projection import NAME
from threadline.kernel.canonical import canonical_json
from threadline.kernel.limits import SEGMENTS_MAX
from threadline.kernel.policy import Read


class Segment(msgspec.Struct, frozen=True, dict=True, kw_only=True, rename={"conditions": "when"}):
    """The people of whom `when` is true."""

    name: Given
    conditions: Annotated[Conditions, WHEN_FORM, Meta(description="The conditions under which somebody belongs to it.")]
    description: str = ""
    place: Given = ""

    @cached_property
    def version(self) -> str:
        """A hash of the conditions: another one means that members are to be looked at again."""
        return hashlib.blake2b(canonical_json(self.conditions.plain), digest_size=8).hexdigest()

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that decide who belongs."""
        return tuple(Read(name, path, f"{self.place}: segment {self.name!r}") for name, path in self.conditions.reads)

    def problems(self, written: Collection[str]) -> Problems:
        """What conditions of segments cannot go by."""
        for path in self.conditions.fields:
            name, _ = viewed(path)
            if not name:
                yield "when", f"a segment depends on what is known of a person, not on one event: {'.'.join(path)}"
            elif name == SEGMENTS.section:
                cure = "repeat the conditions, or share them by a YAML anchor"
                yield "when", f"a segment cannot depend on other segments; {cure}"


SEGMENTS = Named(
    "segments", "segment", struct(Segment), "Segments by name: the people of whom `when` is true.", "big_spenders",
    most=SEGMENTS_MAX, names=NAME,
)  # fmt: skip
SECTION = SEGMENTS.declared


def read_segments(definitions: Definitions) -> tuple[Segment, ...] | None:
    """The declared segments by name; None if no file has the section. Problems are noted in the documents."""
    found = SEGMENTS.read(definitions).values
    return tuple(found.values()) if definitions.section(SEGMENTS.section) else None
