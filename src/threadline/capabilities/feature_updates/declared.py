"""What the feature updates put into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.feature_updates.definition import read_feature_updates
from threadline.capabilities.feature_updates.policy import feature_updates_policy
from threadline.capabilities.feature_updates.projection import feature_updates_projection


def declare(definitions: Definitions) -> list[Any]:
    """The projection and the policy where the section stands."""
    updates = read_feature_updates(definitions)
    return [] if updates is None else [feature_updates_projection(), feature_updates_policy(updates)]
