"""The schema: which operations are fields, of the root and of a person."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
import strawberry
from strawberry.extensions import SchemaExtension
from strawberry.schema.config import StrawberryConfig

from threadline.capabilities.profile.people.operations.people import PersonSummary
from threadline.capabilities.profile.people.operations.person import PersonView
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Operation
from threadline.surfaces.graphql.loading import Loading
from threadline.surfaces.graphql.types import SCALARS, Instant, Types, argument_type, hint_of, hints_of
from threadline.surfaces.operation_calls import shown


class Field(NamedTuple):
    """An operation as a field."""

    operation: str
    member: str = ""
    """The member of the result that the field is; empty: the result as a whole."""
    left_out: frozenset[str] = frozenset()
    """Parameters that are no arguments."""


OF_PERSON: Mapping[str, Field] = {
    "alerts": Field("alerts_of", "alerts", frozenset({"anyone"})),
    "events": Field("events_of", "", frozenset({"types"})),
    "features": Field("features_of", "features"),
    "interests": Field("interests_of", "topics"),
    "memory": Field("memory_of", "facts"),
    "points": Field("points_of"),
    "segments": Field("segments_of", "segments"),
    "streaks": Field("streaks_of", "streaks"),
}
OF_ROOT: Mapping[str, Field] = {
    "event": Field("events_show"),
    "features": Field("features_list", "features"),
    "leaderboard": Field("leaderboards_top"),
    "people": Field("people_list"),
    "segment_members": Field("segments_members"),
    "segments": Field("segments_list", "segments"),
}
_OWN = frozenset({"features", "sources", "timeline"})
"""Fields of the operation `person` that are fields of their own here, pages of one, or need a parameter."""


class Node:
    """A person who is read as soon as more than the id is asked for."""

    def __init__(self, ref: str, as_of: str | None = None) -> None:
        self.ref = ref
        self.as_of = as_of

    @property
    def values(self) -> dict[str, Any]:
        """Parameters of operations on the person."""
        return {"id": self.ref} | ({"as_of": self.as_of} if self.as_of is not None else {})


class Schema(strawberry.Schema):
    """A schema that logs nothing itself: whoever runs a request knows which errors are faults."""

    def process_errors(self, errors: Any, execution_context: Any = None) -> None:
        """See `execution`."""


def made(operations: Iterable[Operation], extensions: Iterable[Callable[[], SchemaExtension]]) -> Schema:
    """The schema of these operations; one that the definitions leave out is no field."""
    known = shown(operations, "http")
    person: Any = type("Person", (), {"__annotations__": {}})
    types = Types(person, Node, frozenset({PersonSummary}))
    _add_profile(person, types, known["person"])
    _add_operations(person, types, known, OF_PERSON, bound=True)
    strawberry.type(person, description="Everything known about a person, at one instant.")
    query: Any = type("Query", (), {"__annotations__": {}})
    _add_operations(query, types, known, OF_ROOT, bound=False)
    _add(query, "person", person | None, _person(known["person"]), "A person, now or as of an instant.", [_ID, _AS_OF])
    if "alerts_of" in known:
        _add_alerts(query, types, known["alerts_of"])
    strawberry.type(query, description="What can be asked.")
    config = StrawberryConfig(scalar_map=SCALARS)
    return Schema(query=query, config=config, extensions=list(extensions))


_REF = "A user id, any other identifier as kind:value (email:ada@example.com), or a person's id."
_ID = inspect.Parameter("id", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[str, strawberry.argument(_REF)])
_AS_OF = inspect.Parameter(
    "as_of",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[Instant | None, strawberry.argument("The instant to read at; without it now.")],
)


def _person(operation: Operation) -> Callable[..., Any]:
    async def resolve(root: Any, info: strawberry.Info, *, id: str, as_of: str | None = None) -> Node:
        node = Node(id, as_of)
        # Somebody unknown is an error of this field, and not of each field below it.
        await _loading(info).call(operation, {**node.values, "timeline": 0})
        return node

    return resolve


def _loading(info: strawberry.Info) -> Loading:
    loading: Loading = info.context
    return loading


def _add_profile(person: type, types: Types, operation: Operation) -> None:
    """What the operation `person` shows."""
    for name, hint in hints_of(PersonView):
        if name in _OWN:
            continue

        async def resolve(root: Any, info: strawberry.Info, name: str = name) -> Any:
            view = await _loading(info).call(operation, {**root.values, "timeline": 0})
            return getattr(view, name)

        _add(person, name, types.of_field(PersonView, name), resolve, hint.description, [])


def _add_operations(
    made: type, types: Types, known: Mapping[str, Operation], fields: Mapping[str, Field], *, bound: bool
) -> None:
    for name, field in fields.items():
        if (operation := known.get(field.operation)) is not None:
            left_out = field.left_out | ({"id"} if bound else set())
            _add_operation(made, types, name, field, operation, left_out)


def _add_operation(
    made: type, types: Types, name: str, field: Field, operation: Operation, left_out: frozenset[str]
) -> None:
    hints = dict(hints_of(operation.params))
    result = types.of_field(operation.result, field.member) if field.member else types.of(operation.result)
    hint = dict(hints_of(operation.result))[field.member] if field.member else hint_of(operation.result)

    async def resolve(root: Any, info: strawberry.Info, **given: Any) -> Any:
        bound = {key: value for key, value in root.values.items() if key in hints} if isinstance(root, Node) else {}
        given = {key: value for key, value in given.items() if value is not None}
        answer = await _loading(info).call(operation, {**bound, **given})
        return types.shown(hint, getattr(answer, field.member) if field.member else answer)

    assert all(param.name == param.encode_name for param in msgspec.structs.fields(operation.params))
    required = {param.name for param in msgspec.structs.fields(operation.params) if param.required}
    arguments = [_argument(key, hint, key in required) for key, hint in hints.items() if key not in left_out]
    # Null where the operation fails, so that the rest of the answer stands.
    _add(made, name, result | None, resolve, operation.summary, arguments)


def _add_alerts(query: type, types: Types, operation: Operation) -> None:
    """The alerts of a person, or of the user whose web token asks."""
    hints = dict(hints_of(operation.params))
    hints.pop("anyone")

    async def resolve(root: Any, info: strawberry.Info, *, person: str | None = None, **given: Any) -> Any:
        caller = _loading(info).caller
        if bool(caller.user) == bool(person):
            raise InvalidValue(
                "leave `person` out: a web token reads its user's alerts" if caller.user else "say whose, by `person`",
                param="person",
            )
        given = {key: value for key, value in given.items() if value is not None}
        whose = {"id": f"user_id:{caller.user}", "anyone": True} if caller.user else {"id": person}
        return (await _loading(info).call(operation, {**given, **whose})).alerts

    hints.pop("id")
    arguments = [_argument(key, hint, required=False) for key, hint in hints.items()]
    person = Annotated[str | None, strawberry.argument(f"{_REF} With a web token it is left out.")]
    arguments.append(inspect.Parameter("person", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=person))
    _add(query, "alerts", types.of_field(operation.result, "alerts") | None, resolve, operation.summary, arguments)


def _argument(name: str, hint: Any, required: bool) -> inspect.Parameter:
    about = strawberry.argument(hint.description or None)
    kind: Any = str if required else argument_type(hint)
    annotation: Any = Annotated[kind, about]
    if required:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _add(
    made: type,
    name: str,
    kind: Any,
    resolve: Callable[..., Any],
    description: str,
    arguments: Iterable[inspect.Parameter],
) -> None:
    """Add a field with a resolver whose arguments are known only while the program runs."""
    own = [
        inspect.Parameter("root", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any),
        inspect.Parameter("info", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=strawberry.Info),
    ]

    async def resolved(root: Any, info: strawberry.Info, **given: Any) -> Any:
        return await resolve(root, info, **given)

    resolved.__signature__ = inspect.Signature([*own, *arguments], return_annotation=kind)  # type: ignore[attr-defined]
    made.__annotations__[name] = kind
    setattr(made, name, strawberry.field(resolver=resolved, description=description or None))
