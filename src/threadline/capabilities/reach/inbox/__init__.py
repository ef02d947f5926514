"""The development inbox: mail that is sent without a provider can be read here, and leaves the machine nowhere."""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("inbox", __name__)
