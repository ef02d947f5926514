"""Features: numbers and facts about one person, declared in YAML, folded from events, exact at the instant of reading.

What it promises: a feature is one declaration (events, aggregate, window, rule for nothing), those that ship included.
Any order of the same events gives the same state; windows are half-open and exact to the microsecond; money is exact
and per currency; each value says whether it is PRESENT, STALE or NOT_FOUND, when it was last computed, and when it
will next change by time alone. A campaign that nobody reacts to becomes one ``campaign_ignored`` event.
"""

from threadline.capabilities.profile.features.campaigns import campaigns_projection
from threadline.capabilities.profile.features.definition import (
    SECTIONS,
    Currencies,
    Feature,
    FeatureSet,
    load_definitions,
    read_definitions,
)
from threadline.capabilities.profile.features.policy import ignored_policy
from threadline.capabilities.profile.features.projection import projection
from threadline.kernel.capability import Capability

CAPABILITY = Capability("features", __name__, is_core=True)

__all__ = [
    "CAPABILITY",
    "SECTIONS",
    "Currencies",
    "Feature",
    "FeatureSet",
    "campaigns_projection",
    "ignored_policy",
    "load_definitions",
    "projection",
    "read_definitions",
]
