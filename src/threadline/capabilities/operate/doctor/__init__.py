"""The doctor: whether all is well with what stands behind a server, and what to do where it is not.

Promise: it reads a bounded amount, changes nothing, and names for each fault the command that mends it.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("doctor", __name__, is_core=True)
