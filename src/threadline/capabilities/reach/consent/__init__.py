"""Who may be written to: subscriptions to topics, suppressed addresses, and the pages behind the links of a mail.

A topic is what somebody subscribes to. A subscription is what the events `subscribed` and `unsubscribed` say last;
unsubscribing counts for the whole person and, by a link or an operation, for the address whoever has it. Suppression is
apart: an address that bounced or complained gets no mail of any kind until an operator lifts it, whatever is imported,
merged or subscribed meanwhile.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("consent", __name__, is_core=True)
