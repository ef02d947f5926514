"""Interests: what a person cares about, ranked from the actions that they took.

What it promises: every action with a topic counts at once, under each of its scopes; a ranking is exact at the instant
of reading, fades by time alone, and depends on the set of actions only, never on the order in which they arrived. Where
the person came from first and last is kept beside it, and follows them when they sign in.
"""

from threadline.capabilities.profile.interests.definition import Interests, Source, Topic, read_interests
from threadline.capabilities.profile.interests.projection import interests_projection
from threadline.kernel.capability import Capability

CAPABILITY = Capability("interests", __name__)

__all__ = ["CAPABILITY", "Interests", "Source", "Topic", "interests_projection", "read_interests"]
