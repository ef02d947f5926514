"""Senders: carry effects out of the house; one file each."""
