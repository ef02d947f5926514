"""What a segment is made of, read from the section ``segments``."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import Conditions
from threadline.capabilities.foundation.conditions.fields import viewed
from threadline.capabilities.foundation.conditions.forms import WHEN_FORM
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import Given, Named, NotWritten, Problems, struct
from threadline.kernel.canonical import canonical_json
from threadline.kernel.limits import SEGMENTS_MAX
from threadline.kernel.policy import Read
from threadline.kernel.suggestion import suggestion

SECTION_NAME = "segments"


class Segment(msgspec.Struct, frozen=True, dict=True, kw_only=True, rename={"conditions": "when"}):
    """The people of whom `when` is true."""

    name: Given
    conditions: Annotated[Conditions, WHEN_FORM, Meta(description="The conditions under which somebody belongs to it.")]
    description: str = ""
    place: Given = ""
    others: NotWritten[tuple[Segment, ...]] = ()
    """The segments whose members' `since` the conditions read."""

    @cached_property
    def version(self) -> str:
        """A hash of the conditions: another one means that members are to be looked at again."""
        conditions = [other.conditions.plain for other in self.with_others]
        written = canonical_json(conditions if self.others else conditions[0])
        return hashlib.blake2b(written, digest_size=8).hexdigest()

    @cached_property
    def with_others(self) -> tuple[Segment, ...]:
        """It and all segments that decide who belongs to it."""
        return (self, *(segment for other in self.others for segment in other.with_others))

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that decide who belongs."""
        return tuple(
            Read(*read, f"{other.place}: segment {other.name!r}")
            for other in self.with_others
            for read in other.conditions.reads
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The names of the segments whose `since` the conditions read."""
        return tuple(path[0] for name, path in self.conditions.reads if name == SECTION_NAME and path)

    def problems(self, written: Collection[str]) -> Problems:
        """What conditions of segments cannot go by."""
        for path in self.conditions.fields:
            name, steps = viewed(path)
            if not name:
                yield "when", f"a segment depends on what is known of a person, not on one event: {'.'.join(path)}"
            elif name == SECTION_NAME and steps[1:] != ("since",):
                yield "when", "of another segment name since when somebody belongs to it, such as segments.vip.since"


SEGMENTS = Named(
    SECTION_NAME,
    "segment",
    struct(Segment),
    "Segments by name: the people of whom `when` is true.",
    "big_spenders",
    most=SEGMENTS_MAX,
)
SECTION = SEGMENTS.declared
SEGMENT = SEGMENTS.kind


def read_segments(definitions: Definitions) -> tuple[Segment, ...] | None:
    """The declared segments by name; None if no file has the section. Problems are noted in the documents."""
    if not definitions.section(SEGMENTS.section):
        return None
    declared = SEGMENTS.read(definitions).values
    linked: dict[str, Segment] = {}
    for segment in declared.values():
        _link(segment, declared, linked, (), definitions)
    return tuple(linked[name] for name in declared if name in linked)


def _link(
    segment: Segment,
    declared: Mapping[str, Segment],
    linked: dict[str, Segment],
    above: tuple[str, ...],
    definitions: Definitions,
) -> None:
    """Put a segment among those that are ``linked`` to the ones that they read; what cannot be is a problem."""
    place, above = f"{segment.place}: segment {segment.name!r}", (*above, segment.name)
    if segment.name in linked:
        return
    for name in segment.named:
        if name not in declared:
            if name in definitions.failed:
                continue
            definitions.problems.append(f"{place}: there is no segment {name!r}; {suggestion(name, declared)}")
        elif name in above:
            circle = " → ".join((*above[above.index(name) :], name))
            definitions.problems.append(f"{place}: segments depend on each other in a circle: {circle}; break it")
        else:
            _link(declared[name], declared, linked, above, definitions)
    if all(name in linked for name in segment.named):
        others = tuple(linked[name] for name in dict.fromkeys(segment.named))
        linked[segment.name] = msgspec.structs.replace(segment, others=others)
