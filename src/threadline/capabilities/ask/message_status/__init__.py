"""Messages: what became of what a producer sent, under the id that it was given there.

Promise: every message that was answered can be asked for: accepted, with what followed from it; rejected, with the
reason; or both, where two payloads came under one id.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("message_status", __name__)
