"""Questions about everybody: counts over time, funnels, retention, sessions and paths, as SQL over the events."""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("analytics", __name__)
