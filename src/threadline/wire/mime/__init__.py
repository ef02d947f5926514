"""Incoming mail as it came: what a raw message is about, read within bounds and without trust."""
