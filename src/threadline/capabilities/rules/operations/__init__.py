"""The operations of rules, a file for each noun."""
