"""Feature flags: what somebody is shown, by what Threadline knows of them at this moment.

A flag has variants, and rules that are asked in order: the first whose condition is true of the person gives a variant,
or draws one by weights. A draw is a hash of the flag and the targeting key, so that the same key gets the same variant,
whoever asks. Programs ask by OFREP, the remote protocol of OpenFeature. Somebody who is not known is evaluated, and
nobody is created; of somebody who is known, an event says once a day which variant they were shown.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("flags", __name__)

__all__ = ["CAPABILITY"]
