"""The states of a person: folded from events, stored, and read at an instant."""
