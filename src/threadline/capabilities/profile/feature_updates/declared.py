"""What the feature updates put into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.feature_updates.definition import read_feature_updates
from threadline.capabilities.profile.feature_updates.events import FEATURES_CHANGED
from threadline.capabilities.profile.feature_updates.job import feature_updates_job
from threadline.capabilities.profile.feature_updates.policy import feature_updates_policy
from threadline.capabilities.profile.feature_updates.projection import feature_updates_projection


def declare(definitions: Definitions) -> list[Any]:
    """The projection, the job and the policy where the section stands."""
    updates = read_feature_updates(definitions)
    if updates is None:
        return []
    definitions.known_types.add(FEATURES_CHANGED)  # a rule on it is no slip
    return [feature_updates_projection(), feature_updates_job(updates), feature_updates_policy(updates)]
