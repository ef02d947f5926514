"""What the features capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.features.campaigns import campaigns_projection
from threadline.capabilities.features.definition import SECTIONS, read_features
from threadline.capabilities.features.operations.definitions import definitions_operation
from threadline.capabilities.features.policy import ignored_policy
from threadline.capabilities.features.projection import projection


def declare(definitions: Definitions) -> list[Any]:
    """The projections, the policy and the operation that depend on what is declared, and the sections read here."""
    features = read_features(definitions)
    made = [projection(features), campaigns_projection(), ignored_policy(features.ignored_after)]
    return [*made, definitions_operation(features), *SECTIONS]
