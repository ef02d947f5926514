"""The erasure of a person: sealed in one commit, removed table by table, certified in a ledger."""
