"""Retention: events of declared types that are older than declared leave the log, once a day.

Promise: afterwards states, rows and rankings are what the events that are left make of them, the ids of the others stay
so that nothing comes back by being sent again, and what names people or forbids mail can never be declared.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("retention", __name__, is_core=True)
