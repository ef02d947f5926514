"""The operations of webhooks, a file for each noun."""
