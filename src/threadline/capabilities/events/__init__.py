"""Events: what producers say happened, told once, read in any direction, corrected where it was refused.

Promise: each event has its own outcome and never loses a neighbour; a page that is followed to its end has shown every
event once.
"""
