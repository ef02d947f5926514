"""One's own account: who one is here, the password, the second factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.screen import Screen
from threadline.kernel.time import format_time
from threadline.surfaces.console.asking import Asking


def _load(asking: Asking) -> Mapping[str, Any]:
    """No operation tells it: only who is signed in to the console has an account of their own."""
    accounts, session = asking.engine.accounts, asking.session
    account = None if session.token_scopes else accounts.named(session.name)
    if account is None:
        return {"signed_in_with": "A token", "elsewhere": "A token has no password. An admin can make you an account."}
    if account.by_provider:
        elsewhere = "Your identity provider looks after your password and your second factor."
        return {"signed_in_with": "Identity provider", "elsewhere": elsewhere}
    factor = account.second_factor
    return {
        "signed_in_with": "Password" if factor is None else "Password and code",
        "own": {
            "since": "" if factor is None else format_time(factor.since),
            "left": 0 if factor is None else len(factor.recovery),
            "required": account.role in accounts.second_factor_roles,
        },
    }


SCREENS = (
    Screen(
        name="account",
        path="/account",
        title="Your account",
        template="account.html",
        load=_load,
        operation="people_list",
        summary="Your password and your second factor.",
        in_navigation=False,
    ),
)
