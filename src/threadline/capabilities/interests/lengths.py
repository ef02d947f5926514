"""How long the parts of an action may be; what is longer is no interest."""

from __future__ import annotations

TOPIC_LENGTH_MAX = 50
SCOPE_LENGTH_MAX = 50
APPLICATION_LENGTH_MAX = 50
VALUE_LENGTH_MAX = 100
"""Of a scope's value in any event, characters."""
ACTION_VALUE_LENGTH_MAX = 50
"""Of a scope's value at the addresses for actions, which keep to the form that their clients know."""
