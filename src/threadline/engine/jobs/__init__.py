"""Durable work across people: where jobs are stored, and who works on them."""
