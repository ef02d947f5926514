"""The write path: events are validated, assigned to people, worked on a person at a time, and committed."""
