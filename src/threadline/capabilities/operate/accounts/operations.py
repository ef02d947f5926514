"""What can be asked about accounts: list them, make one, change one, remove one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.limits import ACCOUNT_NAME_LENGTH_MAX, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN
from threadline.kernel.operation import SECRET, Choice, Context, Group, NoParams, Operation
from threadline.kernel.ports import WithAccounts
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


class AccountCreateParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The new account. The command line asks for the password, or reads it from the standard input."""

    name: Name
    role: RoleParam
    password: Password


class AccountChangeParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which account, and what is new. A new password ends the account's sessions."""

    name: Name
    role: RoleParam | None = None
    password: Password | None = None


class AccountRemoveParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which account."""

    name: Name


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


def _list(context: Context[WithAccounts], params: NoParams) -> AccountList:
    return AccountList(accounts=[_entry(entry) for entry in context.engine.accounts.entries(context.workspace)])


def _create(context: Context[WithAccounts], params: AccountCreateParams) -> AccountEntry:
    return _entry(context.engine.accounts.create(context.workspace, params.name, params.password, params.role))


def _change(context: Context[WithAccounts], params: AccountChangeParams) -> AccountEntry:
    accounts = context.engine.accounts
    if params.password is not None:
        return _entry(accounts.set_password(context.workspace, params.name, params.password))
    assert params.role is not None  # one of the two is given
    return _entry(accounts.set_role(context.workspace, params.name, params.role))


def _remove(context: Context[WithAccounts], params: AccountRemoveParams) -> AccountEntry:
    return _entry(context.engine.accounts.remove(context.workspace, params.name))


LIST = Operation(
    name="accounts_list",
    group=ACCOUNTS_GROUP,
    summary="List the accounts of the workspace.",
    params=NoParams,
    result=AccountList,
    run=_list,
    method="GET",
    path="/v1/accounts",
    scope="admin",
)
CREATE = Operation(
    name="accounts_create",
    group=ACCOUNTS_GROUP,
    summary="Make an account for somebody who is to use the console.",
    done=("Created the account {name} with the role {role}",),
    params=AccountCreateParams,
    result=AccountEntry,
    run=_create,
    method="POST",
    path="/v1/accounts",
    scope="admin",
    status=201,
    private=frozenset({"password"}),
    example=AccountCreateParams(name="ada@example.com", role="marketer", password="correct horse battery staple"),
)
CHANGE = Operation(
    name="accounts_change",
    group=ACCOUNTS_GROUP,
    summary="Give an account another role, or another password.",
    done=(
        "Gave the account {name} the role {role}",
        "Gave the account {name} another password",
    ),
    params=AccountChangeParams,
    result=AccountEntry,
    run=_change,
    method="POST",
    path="/v1/accounts/{name}",
    scope="admin",
    private=frozenset({"password"}),
    choices=(Choice(("role", "password"), required=True),),
    example=AccountChangeParams(name="ada@example.com", role="operator"),
)
REMOVE = Operation(
    name="accounts_remove",
    group=ACCOUNTS_GROUP,
    summary="Remove an account: its sessions end.",
    done=("Removed the account {name}",),
    params=AccountRemoveParams,
    result=AccountEntry,
    run=_remove,
    method="DELETE",
    path="/v1/accounts/{name}",
    scope="admin",
    example=AccountRemoveParams(name="ada@example.com"),
)
