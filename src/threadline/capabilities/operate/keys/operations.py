"""What can be asked about keys: list them, make one, revoke one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Time
from threadline.kernel.errors import InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, NoParams, Params, operation
from threadline.kernel.time import format_time, parse_time

KEYS_GROUP = Group("keys", "Write keys and tokens: make, list and revoke them.")


class KeyCreateParams(Params, kw_only=True):
    """Asks for a new key."""

    name: Annotated[
        str, Meta(min_length=1, max_length=100, description="Source of what a write key records; holder of a token.")
    ]
    kind: Annotated[
        Literal["write_key", "token"], Meta(description="A write key only records; a token has scopes.")
    ] = "write_key"
    scopes: Annotated[
        list[Literal["read", "write", "admin", "personal"]],
        Meta(description="Of a token: read, write, admin; personal: agents see personal data unmasked."),
    ] = []
    expires_at: Annotated[Time | None, Meta(description="From when it opens nothing; without it never.")] = None


class KeyRevokeParams(Params, kw_only=True):
    """Names the key to take away."""

    id: Annotated[str, Meta(min_length=1, max_length=64, description="The id that the list shows.")]


@key_fields("name", "kind", "scopes", "last_used_at", "id")
class KeyEntry(msgspec.Struct, kw_only=True):
    """One key, without its secret."""

    id: str
    kind: str
    name: str
    workspace: str
    scopes: list[str]
    created_at: str
    expires_at: Annotated[str, Meta(description="From when it opens nothing; empty: never.")] = ""
    last_used_at: Annotated[str, Meta(description="When it was last used, to the hour; empty: never yet.")] = ""


class NewKey(KeyEntry, kw_only=True):
    """A key that was just made: the only time its secret is shown."""

    secret: str


class KeyList(msgspec.Struct):
    """The keys of a workspace, oldest first."""

    keys: list[KeyEntry]


def _fields(credential: Any) -> dict[str, Any]:
    names = ("id", "kind", "name", "workspace")
    fields = {name: getattr(credential, name) for name in names}
    expires_at = format_time(credential.expires_at) if credential.expires_at else ""
    return {
        **fields,
        "scopes": list(credential.scopes),
        "created_at": format_time(credential.created_at),
        "expires_at": expires_at,
    }


@operation("GET /v1/keys", KEYS_GROUP, scope="admin")
def list_(context: Context, params: NoParams) -> KeyList:
    """List the keys of the workspace."""
    credentials = context.engine.credentials.entries(context.workspace)
    used = context.engine.credentials.used(context.workspace)
    return KeyList(
        [
            KeyEntry(**_fields(entry), last_used_at=format_time(used[entry.id]) if entry.id in used else "")
            for entry in credentials
        ]
    )


@operation(
    "POST /v1/keys",
    KEYS_GROUP,
    done=("Created the {kind} {name}", "Created the write key {name}"),
    scope="admin",
    status=201,
    example=KeyCreateParams(name="shop"),
)
def create(context: Context, params: KeyCreateParams) -> NewKey:
    """Make a write key or a token; its secret is shown only this once."""
    credentials = context.engine.credentials
    expires_at = 0 if params.expires_at is None else parse_time(params.expires_at)
    if expires_at and expires_at <= context.now:
        raise InvalidValue("a key that has expired already opens nothing; give a later instant", param="expires_at")
    credential, secret = credentials.create(
        context.workspace, params.kind, params.name, params.scopes, expires_at=expires_at
    )
    return NewKey(**_fields(credential), secret=secret)


@operation(
    "DELETE /v1/keys/{id}",
    KEYS_GROUP,
    done=("Revoked the key {id}",),
    example=KeyRevokeParams(id="0123456789abcdef"),
    scope="admin",
)
def revoke(context: Context, params: KeyRevokeParams) -> KeyEntry:
    """Revoke a key: requests with it are refused from now on."""
    return KeyEntry(**_fields(context.engine.credentials.revoke(context.workspace, params.id)))
