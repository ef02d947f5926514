"""Schemas: what the properties of events must be like, declared for each type as JSON Schema.

Promise: an event that does not fit its type's schema is rejected with what is wrong and where, kept for correction, and
stops no neighbour; one that fits is recorded as if there were no schema; what was recorded stays, whatever is declared
later. Checking takes time in proportion to the event, whatever patterns stand in the schema. Nothing is ever fetched.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("schemas", __name__, is_core=True)
