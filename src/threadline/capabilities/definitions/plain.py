"""YAML as plain values, the same as JSON has, with the node behind each of them: for forms that come in both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from threadline.capabilities.definitions.document import Document

Place = tuple[str | int, ...]
"""The keys and positions that lead to a part of what was written."""


def shown_place(at: Place) -> str:
    """A place as it is written behind the name of the whole, e.g. ``.all[0].field``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)


class Plain:
    """Plain values of YAML nodes, and where each of them stands."""

    def __init__(
        self,
        document: Document,
        what: str,
        nodes_max: int,
        depth_max: int,
        is_literal: Callable[[str], bool] = lambda key: False,
    ) -> None:
        """``is_literal``: whether a value under this key that YAML reads otherwise than it looks is a problem."""
        self._document = document
        self._what = what
        self._nodes_max = nodes_max
        self._depth_max = depth_max
        self._is_literal = is_literal
        self._nodes: dict[Place, yaml.Node] = {}

    def value(self, node: yaml.Node, at: Place = ()) -> Any:
        """The value of a node. An alias can make much of little, so values are counted; too many are a problem."""
        self._nodes[at] = node
        if len(self._nodes) > self._nodes_max or len(at) > self._depth_max:
            if not self._document.problems:
                self._document.fail(node, f"this is larger or more deeply nested than any {self._what} may be")
            return None
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*at, index)) for index, each in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            keys = self._document.mapping(node, f"a {self._what}")
            return {name: self.value(value, (*at, name)) for name, (_, value) in keys.items()}
        key = next((step for step in reversed(at) if isinstance(step, str)), "")
        problem = self._document.misread(node) if self._is_literal(key) else ""
        if problem:
            self._document.fail(node, problem)
        return self._document.literal(node)

    def nearest(self, at: Place) -> yaml.Node:
        """The node at a place, or the one around it."""
        while at not in self._nodes:
            at = at[:-1]
        return self._nodes[at]
