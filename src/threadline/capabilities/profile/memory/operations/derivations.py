"""The declared derivations."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.profile.memory.definition import DerivationSet
from threadline.capabilities.profile.memory.operations import MEMORY_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, shaped_operation
from threadline.kernel.time import format_duration


@key_fields("name", "description", "fact")
@not_personal
class DerivationView(msgspec.Struct, kw_only=True):
    """How events make facts of one kind."""

    name: str
    description: str
    events: list[str]
    fact: Annotated[str, Meta(description="Type and key; braces stand where an event puts something in.")]
    source: str
    fields: Annotated[dict[str, str], Meta(description="Fields of the value and how each is made.")]
    expires_after: str | None
    most: int
    version: int


class DerivationsResult(msgspec.Struct, kw_only=True):
    """Every derivation in force, by name."""

    fingerprint: Annotated[str, Meta(description="Changes with anything that shapes facts.")]
    derivations: list[DerivationView]


@shaped_operation("GET /v1/memory", MEMORY_GROUP)
def definitions(derivations: DerivationSet, context: Context, params: NoParams) -> DerivationsResult:
    """List the derivations in force and which facts each makes."""
    shown = [
        DerivationView(
            name=derivation.name,
            description=derivation.description,
            events=[feed.type for feed in derivation.feeds],
            fact=f"{_shape(derivation.type)}/{_shape(derivation.key)}",
            source=derivation.source,
            fields={f.name: f.aggregate for f in derivation.fields} | dict.fromkeys(derivation.constants, "constant"),
            expires_after=None if derivation.expires_after is None else format_duration(derivation.expires_after),
            most=derivation.most,
            version=derivation.version,
        )
        for derivation in derivations.derivations
    ]
    return DerivationsResult(fingerprint=derivations.fingerprint, derivations=shown)


def _shape(template: Any) -> str:
    return "".join(
        part if isinstance(part, str) else "{" + "|".join(".".join(steps) for steps in part.places.steps) + "}"
        for part in template
    )
