"""What is folded of a person from events, and how that is stored."""
