"""Names that people bring along, which nothing has to declare: their traits and tags."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.capabilities.foundation.events.names import properties_of
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.profile.people.tags import LIST, named_in, tagged, tags_in_use
from threadline.kernel.event import Event
from threadline.kernel.limits import SEEN_TAGS_MAX
from threadline.kernel.names import TAG, TRAIT, NameKind


def _traits(event: Event) -> Iterable[str]:
    return (name for name in properties_of(event) if name != LIST) if event.type == IDENTIFY else ()


TRAIT_KIND = NameKind(
    TRAIT,
    lambda definitions: None,
    never="nobody ever had the trait",
    of_types=lambda types: types.of(IDENTIFY).property_schemas,
    brought=_traits,
    is_path=True,
)
TAG_KIND = NameKind(
    TAG,
    lambda definitions: None,
    never="nobody ever had the tag",
    brought=named_in,
    stored=lambda engine, workspace: tags_in_use(engine.store, workspace, SEEN_TAGS_MAX),
    has=lambda engine, workspace, tag: bool(tagged(engine.store, workspace, tag, "", 1)),
)
