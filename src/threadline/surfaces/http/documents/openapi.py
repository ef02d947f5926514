"""The OpenAPI 3.1 document, made of the operations and of the addresses that are no operations."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import msgspec

from threadline.kernel.operation import Operation
from threadline.kernel.public_route import PublicRoute
from threadline.surfaces.http.addresses.following import following_paths
from threadline.surfaces.http.addresses.graphql import GRAPHQL_PATHS
from threadline.surfaces.http.addresses.health import Status, Version
from threadline.surfaces.http.addresses.public import public_paths
from threadline.surfaces.http.answers.problem import MEDIA_TYPE, Problem
from threadline.surfaces.http.documents.openapi_appaction import APPACTION_PATHS, APPACTION_TYPES, allow_null
from threadline.surfaces.http.documents.openapi_ingest import INGEST_PATHS, RECORDED, RECORDED_RESPONSE
from threadline.surfaces.http.documents.openapi_written import require_written
from threadline.surfaces.http.events.ingest import Outcome
from threadline.surfaces.operation_calls import STALE_HEADER, path_names
from threadline.surfaces.row_formats import MEDIA_TYPES, rows_of
from threadline.surfaces.version import package_version

_REF = "#/components/schemas/{name}"
_PROBLEMS = {
    "400": "The request is not well formed.",
    "401": "No usable credential came with the request.",
    "403": "The credential is good, but does not allow this.",
    "404": "There is nothing under that name.",
    "405": "This address does not take that method.",
    "409": "The state is not the one that was expected.",
    "413": "Something is larger than its limit.",
    "415": "The body is compressed in a way, or comes in a format, that is not read here.",
    "429": "A rate limit is used up.",
    "500": "A fault of the server.",
    "501": "The server lacks a setting or a library for this; the hint names it.",
    "503": "The store cannot answer now; the same request may succeed later.",
}


def document(operations: Iterable[Operation], public: Iterable[PublicRoute] = ()) -> dict[str, Any]:
    """The document. Schemas come from the very types that read requests and write answers."""
    listed = [operation for operation in operations if "http" in operation.shown_on]
    types = _types(listed)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    allow_null(components)
    schema_of = dict(zip(map(id, types), schemas, strict=True))
    require_written(
        components,
        [operation.result for operation in listed],
        [schema_of[id(operation.result)] for operation in listed],
        [schema_of[id(operation.params)] for operation in listed],
    )
    paths: dict[str, dict[str, Any]] = {}
    for operation in listed:
        result, params = schema_of[id(operation.result)], schema_of[id(operation.params)]
        shape = components[params["$ref"].rpartition("/")[2]]
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, shape, result)
    followed = {operation.path: paths[operation.path]["get"] for operation in listed if operation.ended is not None}
    for path, methods in (
        *INGEST_PATHS.items(),
        *APPACTION_PATHS.items(),
        *_HEALTH_PATHS.items(),
        *GRAPHQL_PATHS.items(),
        *following_paths(followed).items(),
        *public_paths(public).items(),
    ):
        paths[path] = copy.deepcopy(methods)
    for methods in paths.values():
        for body in methods.values():
            for status in _PROBLEMS.keys() - body.pop("x-without", ()):
                if (own := body["responses"].get(status)) is None:
                    body["responses"][status] = {"$ref": f"#/components/responses/{_PROBLEM}{status}"}
                else:
                    own["content"] = _PROBLEM_CONTENT | own["content"]
            body["responses"] = dict(sorted(body["responses"].items()))
    content = {
        "openapi": "3.1.0",
        "info": {
            "title": "Threadline",
            "version": package_version(),
            "summary": "One thread of events per person.",
            "description": "Events come in over Segment's and CloudEvents' own addresses or `POST /v1/events`; all the "
            "rest reads and corrects. Errors are problem documents (RFC 9457). Times are RFC 3339, UTC.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": _tags(listed, paths),
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "responses": _RESPONSES,
            "headers": {"Stale": _STALE},
            "securitySchemes": _SECURITY,
        },
    }
    return _for_generators(_pruned(content))


_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token (`tl_…`) with the scope needed."},
    "userToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A user's JSON Web Token, from the issuer that the settings `jwt_…` name.",
    },
    "writeKey": {
        "type": "http",
        "scheme": "basic",
        "description": "A write key (`wk_…`) as the user, no password. It may also stand in the body as `writeKey`.",
    },
}


def _types(operations: Iterable[Operation]) -> list[Any]:
    types: list[Any] = [Problem, Outcome, Status, Version, *APPACTION_TYPES]
    for operation in operations:
        types += [operation.params, operation.result]
    return list({id(type): type for type in types}.values())


def _tag(operation: Operation) -> str:
    """The group's name. What stands beside the groups is shown in the one that its path is of."""
    return operation.path.split("/")[2] if operation.group is None else operation.group.name


_OTHER_TAGS = {
    "catalogue": "What this server has: projections, policies, operations, types of events.",
    "cloudevents": "Events as CloudEvents, in every mode.",
    "doctor": "Whether all is well, and what to do where it is not.",
    "graphql": "What is known about people, as one graph.",
    "health": "Whether the server runs and can write, which version it is, and counts.",
    "public": "Addresses that need no credential.",
    "segment": "Events as Segment's and RudderStack's clients send them, unchanged.",
    "ux": "Actions in applications.",
}


def _tags(operations: Iterable[Operation], paths: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    summaries = _OTHER_TAGS | {
        operation.group.name: operation.group.summary for operation in operations if operation.group is not None
    }
    used = sorted({body["tags"][0] for methods in paths.values() for body in methods.values()})
    return [{"name": tag, "description": summaries[tag]} if tag in summaries else {"name": tag} for tag in used]


def _operation(operation: Operation, shape: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    names = path_names(operation)
    example = _example(operation, shape)
    meaning = (operation.params.__doc__ or "").strip() if shape.get("properties") else ""
    together = [_sentence(str(choice)) for choice in operation.choices]
    together += [f"`{name}` needs `{other}`." for name, other in operation.needs]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [_tag(operation)],
        "security": [{"token": []}],
        "parameters": [_path_parameter(name, shape["properties"][name]) for name in names],
        "responses": {str(operation.status): _answer("What was asked for.", result)},
        "description": " ".join([*filter(None, [meaning]), *together, f"Needs the scope `{operation.scope}`."]),
    }
    if operation.relies_on:
        described["responses"][str(operation.status)]["headers"] = {
            STALE_HEADER: {"$ref": "#/components/headers/Stale"}
        }
    if operation.revalidated:
        described["responses"]["304"] = {"description": "What `If-None-Match` names is still the answer."}
        described["description"] += " The answer has an `ETag`."
    others = {name: schema for name, schema in shape.get("properties", {}).items() if name not in names}
    required = [name for name in shape.get("required", ()) if name not in names]
    if operation.method == "POST":
        body = {"type": "object", "properties": others, "required": required, "additionalProperties": False}
        if combined := list(_combinations(operation)):
            body["allOf"] = combined
        content: dict[str, Any] = {"schema": body}
        if operation.example is not None or not others:
            content["example"] = {name: value for name, value in example.items() if name in others}
        needed = bool(required) or any(choice.required for choice in operation.choices)
        described["requestBody"] = {"required": needed, "content": {"application/json": content}}
    else:
        described["parameters"] += [_query_parameter(name, others[name], name in required) for name in others]
    if operation.media_type:
        binary = {"schema": {"type": "string", "format": "binary"}}
        described["responses"][str(operation.status)]["content"] = {operation.media_type: binary}
    if rows_of(operation.result) is not None and operation.method != "POST":
        # Of what is recorded or changed the answer is read by programs: a client that is generated knows its type.
        described["responses"][str(operation.status)]["content"] |= _ROW_CONTENT
        described["parameters"].append(_FORMAT)
    for parameter in described["parameters"]:
        if parameter["name"] in example:
            parameter["example"] = example[parameter["name"]]
    if operation.method != "POST" or not others:
        described["x-without"] = ("415",)
    return described


_ROW_CONTENT = {MEDIA_TYPES[form].partition(";")[0]: {"schema": {"type": "string"}} for form in ("csv", "parquet")}
_FORMAT = {
    "name": "format",
    "in": "query",
    "required": False,
    "schema": {"enum": [*MEDIA_TYPES]},
    "description": "The form of the list, instead of what `Accept` says. The header `Link` leads to the next page.",
}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _combinations(operation: Operation) -> Iterator[dict[str, Any]]:
    """What `Operation.choices` and `Operation.needs` are in JSON Schema. Of a query it has no form."""
    for choice in operation.choices:
        if choice.required:
            yield {"anyOf": list(map(_given, choice.names))}
        for first, second in combinations(choice.names, 2):
            yield {"not": {"allOf": [_given(first), _given(second)]}}
    for name, other in operation.needs:
        yield {"anyOf": [{"not": _given(name)}, _given(other)]}


def _given(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"not": {"enum": [None, False, "", []]}}}}


def _example(operation: Operation, shape: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call that makes sense, without those that say what holds anyway."""
    if operation.example is None:
        return {}
    example = msgspec.to_builtins(operation.example)
    needed, properties = shape.get("required", ()), shape["properties"]
    return {
        name: value for name, value in example.items() if name in needed or value != properties[name].get("default")
    }


def _path_parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    schema = {**schema, "minLength": max(1, schema.get("minLength", 1))}
    return _parameter(name, "path", schema, required=True)


def _query_parameter(name: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    if "anyOf" in schema:
        # A query has no null: the parameter is left out instead.
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        schema = {**kinds[0], **rest} if len(kinds) == 1 else {**rest, "anyOf": kinds}
    return _parameter(name, "query", schema, required=required)


def _parameter(name: str, location: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    schema = dict(schema)
    description = schema.pop("description", "")
    parameter = {"name": name, "in": location, "required": required, "schema": schema}
    return {**parameter, "description": description} if description else parameter


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_PROBLEM = "Problem"
_PROBLEM_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name=_PROBLEM)}}}
_RESPONSES: dict[str, Any] = {
    f"{_PROBLEM}{status}": {"description": meaning, "content": _PROBLEM_CONTENT}
    for status, meaning in _PROBLEMS.items()
} | {RECORDED: RECORDED_RESPONSE}
"""Written once: repeated at each operation they were more than half of the document."""


def _open(name: str, summary: str, schema: str, *extra: str) -> dict[str, Any]:
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "tags": ["health"],
            "security": [],
            "description": "Needs no credential.",
            "responses": {"200": _answer("It is so.", {"$ref": _REF.format(name=schema)})},
            "x-without": ("401", "403", "409", "413", "415", "429", *extra),
        }
    }


_HEALTH_PATHS: dict[str, Any] = {
    "/livez": _open("livez", "Tell whether the server runs.", "Status", "503"),
    "/readyz": _open("readyz", "Tell whether the store can be written to.", "Status"),
    "/version": _open("version", "Tell which version runs.", "Version", "503"),
    "/metrics": {
        "get": {
            "operationId": "metrics",
            "summary": "Counts and durations for Prometheus.",
            "tags": ["health"],
            "description": "Needs the scope `admin`, because it names sources: those of the token's workspace, or of "
            "every one for a token of the settings.",
            "security": [{"token": []}],
            "responses": {"200": {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
            "x-without": ("409", "413", "415", "429"),
        }
    },
}


_STALE = {
    "description": "Sent while what the answer goes by is older than the definitions in force: what, and what to do.",
    "schema": {"type": "string"},
    "example": "segments; run `threadline apply` or call `definitions_apply`",
}


def _for_generators(document: dict[str, Any]) -> dict[str, Any]:
    """The same in forms that generators of clients read, and not validators alone."""
    schemas = document["components"]["schemas"]
    # Types of one name in two modules are called by their modules as well; a generator finds no name with dots.
    called = {name: "".join(part.title().replace("_", "") for part in name.split(".")[-2:-1]) for name in schemas}
    names = {name: f"{called[name]}{name.rpartition('.')[2]}" for name in schemas}
    assert len(set(names.values())) == len(names), "two schemas would have one name"
    document["components"]["schemas"] = {
        names[name]: {**schema, "title": names[name]} for name, schema in schemas.items()
    }
    references = {_REF.format(name=name): _REF.format(name=new) for name, new in names.items()}
    plain: dict[str, Any] = _plain(document, references)
    return plain


def _plain(value: Any, references: Mapping[str, str]) -> Any:
    """A value with its references renamed, and where each array and object says what is in it.

    Generators refuse `items: false` and arrays without `items`, so that a pair is an array of two of either kind; and
    they take an object of which nothing is said for one that is always empty.
    """
    if isinstance(value, list | tuple):
        return [_plain(inside, references) for inside in value]
    if not isinstance(value, dict):
        return value
    plain = {name: _plain(inside, references) for name, inside in value.items()}
    if isinstance(target := plain.get("$ref"), str):
        plain["$ref"] = references.get(target, target)
    if plain.get("type") == "array" and not plain.get("items"):
        kinds = plain.pop("prefixItems", [])
        different = [kind for place, kind in enumerate(kinds) if kind not in kinds[:place]]
        plain["items"] = different[0] if len(different) == 1 else {"anyOf": different} if different else {}
    if plain.get("type") in ("object", ["object", "null"]) and not _SAYS_MEMBERS & plain.keys():
        plain["additionalProperties"] = True
    return plain


_SAYS_MEMBERS = {"properties", "additionalProperties", "allOf"}


def _pruned(document: dict[str, Any]) -> dict[str, Any]:
    """The document without schemas that nothing refers to: parameters of a query are written out where they stand."""
    schemas = document["components"]["schemas"]
    wanted: set[str] = set()
    waiting = set(_references([document["paths"], document["components"]["responses"]]))
    while waiting:
        name = waiting.pop()
        wanted.add(name)
        waiting |= set(_references(schemas[name])) - wanted
    document["components"]["schemas"] = {name: schemas[name] for name in sorted(wanted)}
    return document


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inside in value.items():
            if key == "$ref" and inside.startswith(_REF.format(name="")):
                yield inside.rpartition("/")[2]
            else:
                yield from _references(inside)
    elif isinstance(value, list | tuple):
        for inside in value:
            yield from _references(inside)
