"""Every field of an answer that an agent's tool or resource can give says whether it is personal."""

from __future__ import annotations

from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.folding.catalogue import discover
from threadline.kernel.operation import Operation
from threadline.surfaces.mcp.masking import undeclared
from threadline.surfaces.mcp.resources import RESOURCES, TEMPLATES
from threadline.surfaces.mcp.tools import TOOLS


def test_every_field_of_an_answer_says_whether_it_is_personal() -> None:
    operations = {value.name: value for value in discover(definitions=Definitions([])) if isinstance(value, Operation)}
    calls = [call for tool in TOOLS for call in tool.all_calls(operations).values()]
    called = {name for call in calls for name in (call.operation, call.preview) if name}
    called |= {resource.operation for resource in (*RESOURCES, *TEMPLATES)}
    assert len(called) > 100
    wrong = {field for name in called for field in undeclared(operations[name].result)}
    assert wrong == set(), "say what it is with kernel/disclosure.py: what says nothing is masked"
