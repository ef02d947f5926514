"""Erasing a person for good.

Promise: afterwards nothing that was stored about the person is found by any read, in any table, nor in a backup that is
restored; other people's data is what it was; and a certificate in a ledger of hashes says what was removed.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("erasure", __name__, is_core=True)
