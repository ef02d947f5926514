"""Drafts: definitions that somebody is writing, checked and tried on people before they count.

What it promises: a draft is read by the one declaration of its kind, beside everything in force, as `threadline check`
reads a file; checking it and counting people by it writes nothing. A count says whether it is of everybody, and if not,
how far it may be off.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("drafts", __name__, needs=frozenset({"rules"}))
