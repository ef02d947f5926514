"""Events: reported by producers, recorded once, read in any direction, corrected where they were rejected.

Promise: each event has its own outcome and never loses a neighbour; a page that is followed to its end has shown every
event once.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("events", __name__, is_core=True)
