"""Effects: what policies send outside, as operators see it: the queues, what was given up on, and what is unknown.

Promise: an effect that was claimed is sent once or its outcome is shown as unknown, until a sign from outside, a
declared policy or somebody resolves it; nothing that was asked for is lost without an event that says so.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("effects", __name__, is_core=True)
