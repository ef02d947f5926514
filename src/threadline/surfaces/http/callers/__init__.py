"""Who is asking: credentials, tokens of users, and network addresses."""
