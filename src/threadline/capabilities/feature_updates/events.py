"""The event that publishes features."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting

FEATURES_CHANGED = "features_changed"
"""Properties: ``features``, the values by name that are others than those published last; ``as_of``, the instant at
which they were read."""
SOURCE = "feature_updates"
"""The source of that event."""

LASTING = Lasting("feature_updates", {FEATURES_CHANGED: "what was published last is known from it"})
