"""Any store behind Redis or Valkey, and limits that processes share."""
