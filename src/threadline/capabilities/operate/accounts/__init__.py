"""Accounts: the people who use the console, and what each of them may do there."""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("accounts", __name__, is_core=True)
