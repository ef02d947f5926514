"""How large a document is, before it is validated or run: what is too large is refused for the price of reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
    parse,
)

from threadline.kernel.limits import GRAPHQL_COST_MAX, GRAPHQL_DEPTH_MAX, GRAPHQL_FIELDS_MAX, GRAPHQL_TOKENS_MAX

ENTRIES_DEFAULT, ENTRIES_MAX = 100, 1_000
"""Entries of a page whose `limit` is left out, or is not known here."""
ENTRIES_FOR_ONE = 100
"""Entries that cost as much as an operation."""
INTROSPECTION = ("__schema", "__type")
_LISTS_OF_INTROSPECTION = frozenset({"fields", "interfaces", "possibleTypes", "inputFields", "types"})
_NESTED_LISTS_MAX = 3


class Measure:
    """Counts the fields of a document, their depth, and the operations that they run. Raises `GraphQLError`."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self.fields = 0
        self.cost = 0
        self._schema = schema
        self._person = schema.get_type("Person")
        self._variables = variables
        self._fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        self._defaults: dict[str, Any] = {}

    def operation(self, operation: OperationDefinitionNode) -> None:
        """Count what an operation asks for."""
        self._defaults = {
            definition.variable.name.value: definition.default_value for definition in operation.variable_definitions
        }
        root = self._schema.get_root_type(operation.operation)
        self._count(operation.selection_set, root, 1, 1, ())

    def unused(self) -> None:
        """Count the fields of fragments as they stand: validation looks at those that nothing spreads, too."""
        for fragment in self._fragments.values():
            self._add(sum(1 for _ in _own_fields(fragment.selection_set)))

    def _add(self, fields: int) -> None:
        self.fields += fields
        if self.fields > GRAPHQL_FIELDS_MAX:
            raise GraphQLError(f"the document asks for more than {GRAPHQL_FIELDS_MAX} fields; ask for less at a time")

    def _count(
        self, selections: SelectionSetNode, parent: Any, depth: int, times: int, spread: tuple[str, ...]
    ) -> None:
        if depth > GRAPHQL_DEPTH_MAX:
            raise GraphQLError(f"the document is nested more than {GRAPHQL_DEPTH_MAX} levels deep")
        if parent is self._person:
            self._pay(times)
        for selection in selections.selections:
            if isinstance(selection, FieldNode):
                self._field(selection, parent, depth, times, spread)
            elif isinstance(selection, FragmentSpreadNode):
                name = selection.name.value
                if name in spread:
                    raise GraphQLError(f"the fragment {name[:64]!r} spreads itself")
                fragment = self._fragments.get(name)
                self._add(1)
                if fragment is not None:
                    self._count(fragment.selection_set, parent, depth, times, (*spread, name))
            elif isinstance(selection, InlineFragmentNode):
                self._add(1)
                self._count(selection.selection_set, parent, depth, times, spread)

    def _field(self, field: FieldNode, parent: Any, depth: int, times: int, spread: tuple[str, ...]) -> None:
        self._add(1)
        name = field.name.value
        if name in INTROSPECTION:
            self._introspection(field.selection_set, 0, spread)
            return
        known = parent.fields.get(name) if isinstance(parent, GraphQLObjectType) else None
        if known is None:
            return  # validation says so
        inside = get_named_type(known.type)
        entries = self._entries(field) if "limit" in known.args else 0
        if known.args or parent is self._schema.query_type:
            self._pay(times * (1 + entries // ENTRIES_FOR_ONE))
        if field.selection_set is not None:
            self._count(field.selection_set, inside, depth + 1, times * max(1, entries), spread)

    def _pay(self, cost: int) -> None:
        self.cost += cost
        if self.cost > GRAPHQL_COST_MAX:
            raise GraphQLError(
                f"the document may run more than {GRAPHQL_COST_MAX} operations; give a smaller `limit`, or ask for less"
            )

    def _entries(self, field: FieldNode) -> int:
        given = next((argument.value for argument in field.arguments if argument.name.value == "limit"), None)
        if isinstance(given, VariableNode):
            name = given.name.value
            value = self._variables.get(name)
            if type(value) is int:
                return max(0, value)
            given = self._defaults.get(name) if name not in self._variables else None
        elif given is None:
            return ENTRIES_DEFAULT
        if isinstance(given, IntValueNode) and len(given.value) <= len(str(ENTRIES_MAX)):
            return max(0, int(given.value))
        return ENTRIES_MAX

    def _introspection(self, selections: SelectionSetNode | None, lists: int, spread: tuple[str, ...]) -> None:
        """The same for the schema, which is a graph with circles: lists inside lists multiply."""
        if lists > _NESTED_LISTS_MAX:
            raise GraphQLError("lists of the schema are nested too deeply")
        for selection in () if selections is None else selections.selections:
            self._add(1)
            if isinstance(selection, FragmentSpreadNode):
                name = selection.name.value
                if name in spread:
                    raise GraphQLError(f"the fragment {name[:64]!r} spreads itself")
                fragment = self._fragments.get(name)
                self._introspection(None if fragment is None else fragment.selection_set, lists, (*spread, name))
            else:
                name = selection.name.value if isinstance(selection, FieldNode) else ""
                inside = lists + (name in _LISTS_OF_INTROSPECTION)
                self._introspection(selection.selection_set, inside, spread)  # type: ignore[attr-defined]  # all others


def _own_fields(selections: SelectionSetNode | None) -> Iterator[FieldNode]:
    for selection in () if selections is None else selections.selections:
        if isinstance(selection, FieldNode):
            yield selection
        yield from _own_fields(getattr(selection, "selection_set", None))


def measure(schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> Measure:
    """Measure a document with all of its operations. Raises `GraphQLError` for one that is too large."""
    result = Measure(schema, document, variables)
    result.unused()
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            result.operation(definition)
    return result


class Document:
    """A document that was read, and whether it is known to be valid."""

    def __init__(self, text: str) -> None:
        """Raises `GraphQLError`."""
        self.text = text
        self.is_valid = False
        try:
            self.node = parse(text, max_tokens=GRAPHQL_TOKENS_MAX)
        except RecursionError:
            raise GraphQLError("the document is nested too deeply") from None
        self.introspects = any(
            field.name.value in INTROSPECTION
            for definition in self.node.definitions
            for field in _own_fields(getattr(definition, "selection_set", None))
        )

    def refuse_ambiguity(self, name: str | None) -> None:
        """Raise `GraphQLError` unless there is one operation to run, or one of that name."""
        definitions = [
            definition for definition in self.node.definitions if isinstance(definition, OperationDefinitionNode)
        ]
        named = [
            definition
            for definition in definitions
            if name is None or (definition.name is not None and definition.name.value == name)
        ]
        if len(named) != 1:
            wrong = (
                f"has no operation {name[:64]!r}" if name else f"has {len(definitions)} operations; name one of them"
            )
            raise GraphQLError(f"the document {wrong}")
