"""What the features capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadline.capabilities.features.campaigns import campaigns_projection
from threadline.capabilities.features.definition import FeatureSet
from threadline.capabilities.features.loading import load_definitions
from threadline.capabilities.features.policy import ignored_policy
from threadline.capabilities.features.projection import projection

OTHERS = ("identifiers", "settings")
"""Sections of the same files that other rooms read."""


def declare(definitions: Sequence[Path] | FeatureSet | None) -> list[Any]:
    """The projections and the policy of these definitions: files, a feature set that is made already, or None."""
    features = (
        definitions if isinstance(definitions, FeatureSet) else load_definitions(definitions or (), others=OTHERS)
    )
    return [projection(features), campaigns_projection(), ignored_policy(features.ignored_after)]
