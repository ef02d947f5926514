"""The types of events that tell an interest without being declared."""

from __future__ import annotations

ACTION = "app_action"
"""Somebody did something in an application: ``topic``, ``scopes`` (each a topic and a value), ``application_id``."""
INTEREST_DETECTED = "interest_detected"
PRODUCT_VIEWED = "product_viewed"
