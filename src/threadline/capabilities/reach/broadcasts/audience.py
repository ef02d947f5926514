"""Who is in an audience: candidates page by page from an index where there is one, and the conditions on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from threadline.capabilities.foundation.conditions import All, Conditions, Subject, read_json
from threadline.capabilities.foundation.conditions.fields import PROFILE
from threadline.capabilities.profile.people.tags import tagged
from threadline.capabilities.profile.segments.definition import SECTION_NAME
from threadline.capabilities.profile.segments.operations.definitions import Segments, segment_named
from threadline.capabilities.profile.segments.projection import member_rows
from threadline.capabilities.reach.broadcasts.definition import Audience
from threadline.kernel.applied import IndexPart
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Read
from threadline.kernel.ports import Catalogue, Person, PersonReader, Ports


class Found(NamedTuple):
    """A page of an audience."""

    ids: Sequence[str]
    """The people who belong to it, by id."""
    looked_at: int
    next: str
    """After whom to go on; empty at the end."""


class Resolver:
    """Finds the people of one audience. A segment's and a tag's people are read from their index rows."""

    def __init__(self, audience: Audience | None) -> None:
        audience = audience or Audience()
        self._segment = audience.segment
        self._tags = audience.tags
        self._conditions = conditions_of(audience)

    def refuse_mistakes(self, catalogue: Catalogue, segments: Segments) -> None:
        """Raise `InvalidValue` for a segment that is not declared, and for conditions that nobody could meet."""
        if self._segment:
            segment_named(segments, self._segment)
        if self._conditions is not None:
            self._conditions.refuse_event_fields("audience.when")
            catalogue.refuse_unread(Read(name, path, "audience.when") for name, path in self._conditions.reads)

    @property
    def parts(self) -> tuple[IndexPart, ...]:
        """What has to be filled for everybody so that its people are all that there are."""
        rows = [IndexPart(SECTION_NAME, self._segment)] if self._segment else []
        tags = [IndexPart(PROFILE)] if self._tags and not self._segment else []
        return (*rows, *tags, *(() if self._conditions is None else self._conditions.parts))

    def pages(self, engine: Ports, workspace: str, at: int, size: int) -> Iterator[Found]:
        """The whole audience, page by page."""
        after = ""
        while True:
            page = self.page(engine, workspace, at, after, size)
            yield page
            after = page.next
            if not after:
                return

    def page(self, engine: Ports, workspace: str, at: int, after: str, limit: int) -> Found:
        """A page of candidates after an id, and who of them belongs to the audience at an instant."""
        if self._segment:
            rows = member_rows(engine.store, workspace, self._segment, after, limit)
            ids = [row.key.sort for row in islice(rows, limit)]
        elif self._tags:
            ids = tagged(engine.store, workspace, self._tags[0], after, limit)
        else:
            people, following = engine.reader.people(workspace, after, limit)
            return Found(self._belonging(people, engine.reader, at), len(people), following)
        following = ids[-1] if len(ids) == limit else ""
        if self._tags or self._conditions is not None:
            # Workspace and tag together name the rows of a tag: some may be of another workspace, and are left out.
            people = list(engine.reader.people_of(workspace, ids).values())
            return Found(self._belonging(people, engine.reader, at), len(ids), following)
        return Found(ids, len(ids), following)

    def _belonging(self, people: Iterable[Person], reader: PersonReader, at: int) -> list[str]:
        asked = bool(self._tags) or self._conditions is not None
        return sorted(person.id for person in people if not asked or self._belongs(reader.as_of(person, at)))

    def _belongs(self, view: PersonView) -> bool:
        if self._tags and not set(self._tags) <= set(view.view(PROFILE)["tags"]):
            return False
        return self._conditions is None or self._conditions.test(Subject(view.view, at=view.at))


def conditions_of(audience: Audience) -> Conditions | None:
    """What must be true of a person besides segment and tags; None: nothing more."""
    trees = [] if audience.when is None else [read_json(audience.when, "audience.when")]
    trees += [
        read_json({"field": ["traits", name], "equals": value}, f"audience.attributes.{name}")
        for name, value in sorted((audience.attributes or {}).items())
    ]
    if not trees:
        return None
    return Conditions(trees[0] if len(trees) == 1 else All(tuple(trees)))
