"""The type of event that an action in an application becomes."""

from __future__ import annotations

ACTION = "app_action"
"""Somebody did something in an application: ``topic``, ``scopes`` (each a topic and a value), ``application_id``."""
