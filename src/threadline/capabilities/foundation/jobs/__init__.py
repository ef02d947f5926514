"""Jobs as callers see them: durable work across people, such as a broadcast, watched and steered.

What it promises: a job is worked on page by page by any process that works on the store, survives every kill of it,
and can be paused, resumed and cancelled between two pages. Its progress streams over HTTP and is a bar on the terminal.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("jobs", __name__, is_core=True)
