"""Journeys: mails to one person after another, in declared steps that wait, branch and end by themselves.

What it promises: a journey is a tree of steps. Whoever triggers it goes through it once at a time; every advance is one
event of the person, in the commit of what caused it, and the position is folded from these events. Waiting costs a
timer and nothing else. A mail is an effect with one occurrence for each run and step, and is withdrawn if its run was
left. Before a journey is switched on, the workspace's own history says who would have got what, and when.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("journeys", __name__, needs=frozenset({"mail"}))
