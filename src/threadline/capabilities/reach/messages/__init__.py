"""Messages: the one ledger of all channels. A channel is one way to reach people; e-mail is the first.

What it promises, for each channel alike: a message is an effect that waits in the outbox and is made of what is known
of the person at the moment in which it goes. Right before, consent, suppression, caps and quiet hours are asked, in
this order. It is claimed by its occurrence and its address before anybody is called, so that nobody gets two messages
for one occurrence; what became of it is an event of the person; where nobody knows, it waits as unknown. The messages
of a person leave in the order in which they were asked for.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("messages", __name__)
