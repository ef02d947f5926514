"""Mail: templates filled in for one person, and sent once.

What it promises: a mail is an effect like any other. It waits in the outbox, is made of what is known of the person at
the moment in which it goes, and what became of it is an event of the person. Nobody gets two mails for one occurrence.
A template that names something unknown is refused when it is loaded; one that misses something for one person is a dead
letter, and nothing is sent. Marketing mail can be unsubscribed from with one click, obeys frequency caps and quiet
hours of the recipient's zone, and stops where the recipient has said so.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("mail", __name__, needs=frozenset({"messages"}))
