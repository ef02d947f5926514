"""The audit log: what was done by whom, for those who hold the admin scope."""
