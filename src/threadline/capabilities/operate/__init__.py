"""What runs it: accounts, keys, the audit log, effects, erasure, retention and the doctor."""
