"""Accounts: the people who use the console, and what each of them may do there."""
