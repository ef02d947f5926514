"""Feature updates: once a day, what has changed in the features of everybody who was active lately is published.

What it promises: without the section nothing costs anything. With it, a standing job looks at everybody at a time of
the day, in UTC. Of whoever was active within a time that is declared it compares the features with those that were
published last, and what differs becomes one event in the person's thread, which the feed shows, and a call of a webhook
if a destination is named. Whoever has not been active for longer is left alone until they come back.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("feature_updates", __name__, needs=frozenset({"webhooks"}))
