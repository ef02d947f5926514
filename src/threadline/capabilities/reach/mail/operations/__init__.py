"""What callers ask about mail, and the one that they can send."""
