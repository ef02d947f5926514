"""What-if: a candidate tried on history before it touches anybody, and what would have been otherwise because of it.

What it promises: everything happens in a sandbox that only reads the log; nothing is written unless somebody wants the
result kept, and nothing can be sent. Both sides are computed by the same function that decides live, so that what
differs is the candidate's doing. The same candidate on the same history gives the same answer, however often it is
broken off and taken up again.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("whatif", __name__, needs=frozenset({"rules"}))
