"""Answers about one person, or about everybody in order of a number."""
