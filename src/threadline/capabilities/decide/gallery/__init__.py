"""The gallery: journeys that ship with their mails and segments, and are installed whole.

What it promises: each is one file of definitions, with what it is for and what it needs. Before it is installed one
sees it drawn, its mails, whether the store has the events that it waits for, and what it would have done. Installing is
one version of what is made by hand, so that going back takes all of it away again.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("gallery", __name__, needs=frozenset({"drafts", "journeys"}))
