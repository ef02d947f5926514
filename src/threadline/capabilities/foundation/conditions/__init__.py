"""Conditions: trees of tests on an event and a person, the one language of rules, segments and every `where`.

What it promises: one concise form, alike in YAML and in JSON, with every mistake named where it stands; comparison by
type, decimals exact, times as instants; a field that is missing matches nothing and says so; a tree is compiled once
and asked in microseconds, and tells step by step why it did or did not match when somebody wants to know.
"""

from threadline.capabilities.foundation.conditions.evaluating import Conditions
from threadline.capabilities.foundation.conditions.fields import Subject
from threadline.capabilities.foundation.conditions.reading import read_json
from threadline.capabilities.foundation.conditions.tracing import Step, Traced
from threadline.capabilities.foundation.conditions.tree import All, AnyOf, Node, Not, Path, Test, plain
from threadline.capabilities.foundation.conditions.where import EVERY_EVENT, Where
from threadline.kernel.capability import Capability

CAPABILITY = Capability("conditions", __name__, is_core=True)

__all__ = [
    "CAPABILITY",
    "EVERY_EVENT",
    "All",
    "AnyOf",
    "Conditions",
    "Node",
    "Not",
    "Path",
    "Step",
    "Subject",
    "Test",
    "Traced",
    "Where",
    "plain",
    "read_json",
]
