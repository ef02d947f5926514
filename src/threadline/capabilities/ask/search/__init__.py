"""Search: events and decisions found by their words, types, people, rules and times; what is linked to one of them.

Promise: an answer says up to which position of the log it is complete, and of what precedes that it misses nothing. An
index that is built anew answers the same.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("search", __name__, is_core=True)
