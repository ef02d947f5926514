"""Senders: one file for each way to carry an effect out, found by discovery."""
