"""Alerts: short messages that people see inside an application while they are in force.

What it promises: an alert has a severity, a time from which and until which it is shown, and an audience: everybody, or
those with a tag, in a segment, or for whom a condition holds at the instant of reading. Operations write, change and
withdraw it; every version stays readable, and so does what somebody was shown at an earlier instant. Whoever dismisses
an alert does not see it again, whoever they are merged with, until a version says that it is shown again.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("alerts", __name__)
