"""Bounds of one connection: of size, and of time in seconds."""

from __future__ import annotations

import re

from threadline.kernel.limits import REQUEST_BYTES_MAX

HEAD_BYTES_MAX = 64 * 1_024
"""Of a head that comes in several pieces; what comes at once is bounded by what is read at once."""
HEADERS_MAX = 256
"""Headers of one head; a short one takes thirty times its bytes in memory."""
HEAD_SECONDS_MAX = 20.0
BODY_SECONDS_MAX = 120.0
"""Whoever sends a byte now and then would otherwise hold a connection for ever."""
DISCARD_BYTES_MAX, DISCARD_SECONDS_MAX = 2 * REQUEST_BYTES_MAX, 5.0
"""Of a request that is answered before its end, so much is still read, and dropped: a connection that is closed on what
was not read resets, and the client never sees the answer."""
TAKE_SECONDS, TAKE_BYTES_PER_SECOND = 30.0, 16 * 1_024
"""How long a client may take over an answer, and longer by its size."""
EXTRA_SECONDS_MAX = 2.0
"""How long a connection beyond the usual number is waited for."""
FRESH_SECONDS_MAX = 1.0
"""How long a connection that has sent nothing yet is waited for when the server stops."""
HEALTH = (b"/livez", b"/readyz", b"/metrics")
"""Addresses that are answered on any connection: an operator sees why others are refused."""
DISCARD_BYTES_MAX, DISCARD_SECONDS_MAX = 2 * REQUEST_BYTES_MAX, 5.0
"""Of a request that is answered before its end, so much is still read, and dropped: a connection that is closed on what
was not read resets, and the client never sees the answer."""
TAKE_SECONDS, TAKE_BYTES_PER_SECOND = 30.0, 16 * 1_024
"""How long a client may take over an answer, and longer by its size."""
EXTRA_SECONDS_MAX = 2.0
"""How long a connection beyond the usual number is waited for."""
FRESH_SECONDS_MAX = 1.0
"""How long a connection that has sent nothing yet is waited for when the server stops."""
HEALTH = (b"/livez", b"/readyz", b"/metrics")
"""Addresses that are answered on any connection: an operator sees why others are refused."""
HOST = re.compile(rb"(?:\[[0-9A-Za-z:.%~_-]*\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
"""A host and a port, as RFC 9110, 7.2, has them; it may be empty."""

BACKLOG = 2_048
"""Connections that the system keeps until they are accepted."""
