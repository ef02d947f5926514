"""Unsent: each mail that a person could have got and did not, with the reason, and when.

What it promises: an answer rests on what the engine itself goes by: the events of the person, the outbox asked as right
before sending, the runs of journeys, the recipients of broadcasts, and the trace of a rule. It writes nothing.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("unsent", __name__, needs=frozenset({"mail"}))
