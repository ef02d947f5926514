"""Which sections can be made by hand, what one definition of each is called, and the keys under which it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta

from threadline.kernel.errors import InvalidValue
from threadline.kernel.ports import Catalogue
from threadline.kernel.suggestion import suggestion

ASIDE = ("identifiers", "settings")
"""Sections that only a start of the process reads."""
OWN = ("rule_sets", "rules")
"""Sections that have versions of their own, which a what-if lets somebody activate."""
NESTED = ("consent.topics", "mail.senders", "mail.templates")
"""Definitions by name inside of a section that is declared once; of such a section each other member is one as well."""
BY_MEMBER = frozenset(section.partition(".")[0] for section in NESTED)
Name = Annotated[str, Meta(description="The name of the definition.", min_length=1, max_length=200)]
AnySection = Annotated[
    str,
    Meta(
        description="A section of the definitions, such as `segments`, `calendar` or `mail.templates`.", max_length=100
    ),
]
SectionName = Annotated[AnySection, Meta(min_length=1)]


def names_of(catalogue: Catalogue) -> frozenset[str]:
    """The sections that hold definitions by name."""
    return frozenset(section.name for section in catalogue.sections if "propertyNames" in section.schema)


def once_of(catalogue: Catalogue) -> frozenset[str]:
    """The sections that are declared once: what is declared in one is called like the section."""
    return frozenset(section.name for section in catalogue.sections) - names_of(catalogue) - BY_MEMBER


def by_hand_of(catalogue: Catalogue) -> tuple[str, ...]:
    """All sections of which something can be made by hand, those of plug-ins too."""
    there = {section.name for section in catalogue.sections}.difference(ASIDE, OWN)
    return tuple(sorted(there.union(section for section in NESTED if section.partition(".")[0] in there)))


def members_of(catalogue: Catalogue, section: str) -> tuple[str, ...]:
    """What is a definition of a section that is declared member by member, such as the quiet hours of ``mail``."""
    schema = next((known.schema for known in catalogue.sections if known.name == section), {})
    apart = {known.partition(".")[2] for known in NESTED if known.startswith(f"{section}.")}
    return tuple(name for name in schema.get("properties", ()) if name not in apart)


def keys_of(catalogue: Catalogue, section: str, name: str) -> tuple[str, ...]:
    """The keys under which a definition stands in a file, each inside the one before. A dot in the name of a section
    leads into it, as in ``consent.topics``. Raises `InvalidValue` for a section or a name that there is not."""
    if not section:
        return ()
    if section not in (known := (*by_hand_of(catalogue), *OWN)):
        why = "is read at a start only" if section in ASIDE else f"is no section; {suggestion(section[:64], known)}"
        raise InvalidValue(f"{section[:64]!r} {why}", param="section")
    if section in BY_MEMBER and name not in (members := members_of(catalogue, section)):
        raise InvalidValue(f"{section} has no member {name[:64]!r}; {suggestion(name[:64], members)}", param="name")
    if section not in once_of(catalogue):
        return (*section.split("."), name)
    if name != section:
        raise InvalidValue(f"{section} are declared once; the name is {section!r}", param="name")
    return (section,)


def keys_by_hand(catalogue: Catalogue, section: str, name: str) -> tuple[str, ...]:
    """The same of what can be made by hand. Raises `InvalidValue` for what has versions of its own."""
    if section in OWN:
        raise InvalidValue(f"{section} have versions of their own: write a draft, and activate it", param="section")
    return keys_of(catalogue, section, name)


def keys_in(content: Any, section: str, name: str) -> tuple[str, ...]:
    """The keys of a definition in what a text says, where no catalogue is known."""
    inside = content.get(section) if isinstance(content, dict) else None
    is_whole = name == section and not (isinstance(inside, dict) and name in inside)
    return (section,) if is_whole else (*section.split("."), name)


def entries_of(content: Any, named: Collection[str]) -> Iterator[tuple[tuple[str, str], Any]]:
    """(section, name) of every definition that a text says, and its value; ``named``: the sections that hold
    definitions by name."""
    for section, values in (content if isinstance(content, Mapping) else {}).items():
        if section not in BY_MEMBER and section not in named:
            yield (section, section), values
            continue
        for name, value in (values if isinstance(values, Mapping) else {}).items():
            if (inner := f"{section}.{name}") in NESTED and isinstance(value, Mapping):
                yield from (((inner, key), inside) for key, inside in value.items())
            else:
                yield (section, name), value
