"""Segments: the people of whom declared conditions are true, exact at the instant.

What it promises: a segment is one tree of conditions over traits, tags, features and whatever else is known. Entering
and leaving are events in the person's thread, once each; who leaves because time passes leaves at that very instant,
woken by a timer and by no nightly scan. Members are listed without reading people, and so are those who are about to
leave. Reading one person computes membership at the instant of reading, whatever the events say by then.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("segments", __name__, is_core=True)
