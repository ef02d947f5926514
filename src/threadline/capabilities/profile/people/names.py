"""Names that people bring along, which nothing has to declare: their traits and tags."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.capabilities.foundation.events.names import properties_of
from threadline.capabilities.foundation.events.seen import seen_names
from threadline.capabilities.profile.people.events import IDENTIFY, TAG_ADDED
from threadline.capabilities.profile.people.projection import tagged
from threadline.kernel.event import Event
from threadline.kernel.limits import SEEN_TAGS_EVENTS_MAX
from threadline.kernel.names import TAG, TRAIT, NameKind


def _traits(event: Event) -> Iterable[str]:
    return properties_of(event) if event.type == IDENTIFY else ()


def _tags(event: Event) -> Iterable[str]:
    tag = event.properties.get("tag") if event.type == TAG_ADDED else None
    return (tag,) if isinstance(tag, str) else ()


TRAIT_KIND = NameKind(
    TRAIT,
    lambda definitions: None,
    never="nobody ever had the trait",
    of_types=lambda types: types.of(IDENTIFY).property_schemas,
    brought=_traits,
    is_path=True,
)
TAG_KIND: NameKind = NameKind(
    TAG,
    lambda definitions: None,
    never="nobody ever had the tag",
    brought=_tags,
    stored=lambda engine, workspace: seen_names(TAG_KIND, engine, workspace, SEEN_TAGS_EVENTS_MAX),
    has=lambda engine, workspace, tag: bool(tagged(engine.store, workspace, tag, "", 1)),
)
