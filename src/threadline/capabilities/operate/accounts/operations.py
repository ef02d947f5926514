"""What can be asked about accounts: list them, make one, change one, remove one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import ACCOUNT_NAME_LENGTH_MAX, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN
from threadline.kernel.operation import SECRET, Choice, Context, Group, NoParams, Params, operation
from threadline.kernel.roles import Role

ACCOUNTS_GROUP = Group("accounts", "People who use the console, and their roles.")

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=ACCOUNT_NAME_LENGTH_MAX,
        description="Such as an e-mail address: no blank and no slash. Upper and lower case are the same.",
    ),
]
Password = Annotated[
    str,
    SECRET,
    Meta(
        description=f"{PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX} characters.",
        min_length=PASSWORD_LENGTH_MIN,
        max_length=PASSWORD_LENGTH_MAX,
        extra_json_schema={"format": "password"},
    ),
]
RoleParam = Annotated[
    Role,
    Meta(description="viewer: reads. marketer: also what is sent to people. operator: also what waits or failed."),
]


class AccountCreateParams(Params, kw_only=True):
    """The new account. The command line asks for the password, or reads it from the standard input."""

    name: Name
    role: RoleParam
    password: Password


class AccountChangeParams(Params, kw_only=True):
    """Which account, and what is new. A new password ends the account's sessions."""

    name: Name
    role: RoleParam | None = None
    password: Password | None = None


class AccountRemoveParams(Params, kw_only=True):
    """Which account."""

    name: Name


@key_fields("name", "role", "created_at")
class AccountEntry(msgspec.Struct, kw_only=True):
    """One account."""

    name: str
    role: Role
    created_at: Instant


class AccountList(msgspec.Struct, kw_only=True):
    """The accounts of a workspace, by name."""

    accounts: list[AccountEntry]


def _entry(account: Any) -> AccountEntry:
    return AccountEntry(name=account.name, role=account.role, created_at=instant(account.created_at))


@operation("GET /v1/accounts", ACCOUNTS_GROUP, scope="admin")
def list_(context: Context, params: NoParams) -> AccountList:
    """List the accounts of the workspace."""
    return AccountList(accounts=[_entry(entry) for entry in context.engine.accounts.entries(context.workspace)])


@operation(
    "POST /v1/accounts",
    ACCOUNTS_GROUP,
    done=("Created the account {name} with the role {role}",),
    scope="admin",
    status=201,
    private=frozenset({"password"}),
    example=AccountCreateParams(name="ada@example.com", role="marketer", password="correct horse battery staple"),
)
def create(context: Context, params: AccountCreateParams) -> AccountEntry:
    """Make an account for somebody who is to use the console."""
    return _entry(context.engine.accounts.create(context.workspace, params.name, params.password, params.role))


@operation(
    "POST /v1/accounts/{name}",
    ACCOUNTS_GROUP,
    done=(
        "Gave the account {name} the role {role}",
        "Gave the account {name} another password",
    ),
    scope="admin",
    private=frozenset({"password"}),
    choices=(Choice(("role", "password"), required=True),),
    example=AccountChangeParams(name="ada@example.com", role="operator"),
)
def change(context: Context, params: AccountChangeParams) -> AccountEntry:
    """Give an account another role, or another password."""
    accounts = context.engine.accounts
    if params.password is not None:
        return _entry(accounts.set_password(context.workspace, params.name, params.password))
    assert params.role is not None  # one of the two is given
    return _entry(accounts.set_role(context.workspace, params.name, params.role))


@operation(
    "DELETE /v1/accounts/{name}",
    ACCOUNTS_GROUP,
    done=("Removed the account {name}",),
    scope="admin",
    example=AccountRemoveParams(name="ada@example.com"),
)
def remove(context: Context, params: AccountRemoveParams) -> AccountEntry:
    """Remove an account: its sessions end."""
    return _entry(context.engine.accounts.remove(context.workspace, params.name))
