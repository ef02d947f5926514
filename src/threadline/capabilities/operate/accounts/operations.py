"""What can be asked about accounts: list them, make one, change one, remove one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.errors import InvalidSetting
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
    Meta(
        description="viewer: reads. support: also merges, corrects, unsubscribes, exports and erases one person. "
        "marketer: what is sent to people. operator: also what waits or failed."
    ),
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


class AccountNameParams(Params, kw_only=True):
    """Which account."""

    name: Name


@key_fields("name", "role", "second_factor", "created_at")
class AccountEntry(msgspec.Struct, kw_only=True):
    """One account."""

    name: str
    role: Role
    created_at: Instant
    second_factor: Annotated[bool, Meta(description="Whether signing in takes a code as well.")] = False
    by_provider: Annotated[bool, Meta(description="Whether an identity provider lets them in, with its role.")] = False


@key_fields("name", "link", "expires_at")
class PasswordLink(msgspec.Struct, kw_only=True):
    """A link with which somebody sets the password of an account, once: the only time that it is shown."""

    name: str
    link: Annotated[str, Meta(description="Begins with a slash where the server has no `public_url`.")]
    expires_at: Instant


class AccountList(msgspec.Struct, kw_only=True):
    """The accounts of a workspace, by name."""

    accounts: list[AccountEntry]


def _entry(account: Any) -> AccountEntry:
    return AccountEntry(
        name=account.name,
        role=account.role,
        created_at=instant(account.created_at),
        second_factor=account.has_second_factor,
        by_provider=account.by_provider,
    )


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
    """Create an account for somebody who will use the console."""
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
    example=AccountNameParams(name="ada@example.com"),
)
def remove(context: Context, params: AccountNameParams) -> AccountEntry:
    """Remove an account and end its sessions."""
    return _entry(context.engine.accounts.remove(context.workspace, params.name))


@operation(
    "POST /v1/accounts/{name}/password-link",
    ACCOUNTS_GROUP,
    done=("Made a link to set the password of {name}",),
    scope="admin",
    example=AccountNameParams(name="ada@example.com"),
)
def password_link(context: Context, params: AccountNameParams) -> PasswordLink:
    """Make a link with which somebody sets their password: once, within a day. An earlier link opens nothing more."""
    account, secret = context.engine.password_links.make(context.workspace, params.name)
    path = f"/set-password?link={secret}"
    try:
        link = context.engine.public_address.url(path)
    except InvalidSetting:  # on the command line, beside a server that knows its own address
        link = path
    return PasswordLink(name=account.name, link=link, expires_at=instant(account.reset_until))


@operation(
    "DELETE /v1/accounts/{name}/second-factor",
    ACCOUNTS_GROUP,
    done=("Took the second factor from the account {name}",),
    scope="admin",
    example=AccountNameParams(name="ada@example.com"),
)
def reset_second_factor(context: Context, params: AccountNameParams) -> AccountEntry:
    """Take the second factor from an account whose owner has lost it; where it is required, the next sign-in sets up
    another."""
    return _entry(context.engine.second_factors.reset(context.workspace, params.name))
