"""The audit log: what was done by whom, for those who hold the admin scope."""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("audit_log", __name__, is_core=True)
