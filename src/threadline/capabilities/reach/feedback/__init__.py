"""What became of a mail: delivered, delayed, opened, clicked, bounced, complained about, replied to.

However a provider or a server says it, it becomes an event of the person who got the mail, once, with what the mail was
about. Permanent bounces and complaints suppress the address. Counts derive from these events and can't drift.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("feedback", __name__, is_core=True)
