"""What is computed of a person: features, and what became of campaigns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.capabilities.profile.features.operations.vector import feature_views
from threadline.kernel.personal import PersonFile, Subject, joined, shown_views


def _features(subject: Subject) -> Iterator[dict[str, Any]]:
    for name, view in feature_views(subject.views.get("features", {})).items():
        yield {"name": name, **msgspec.to_builtins(view)}


FEATURES_FILE = PersonFile(
    "features",
    "What is computed about you",
    "Figures that are computed from what happened, such as how much was bought in the last 30 days.",
    joined(_features, shown_views("campaigns")),
    ("features", "campaigns"),
)
