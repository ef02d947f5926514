"""People: who a person is across channels, what they said of themselves, when they were seen.

Promise: two first contacts at once make one person; traits are the newest by occurred time, whatever order
they arrive in; joining people and splitting them again is exact.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("people", __name__, is_core=True)
