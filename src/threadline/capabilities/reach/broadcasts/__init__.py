"""Broadcasts: one mail to everybody of an audience, once per person for ever.

What it promises: an id stands for one broadcast for ever. Its audience is shown before anything is sent. It is resolved
and sent page by page as a job that survives every kill, and can be paused, resumed and cancelled, after which no mail
of it leaves that has not left yet. Nobody gets it twice, whoever they are merged with, and whoever is left out as a
holdout is recorded as such. Arms are drawn by a hash, so anybody can draw them again.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("broadcasts", __name__, needs=frozenset({"mail"}))
