"""Keys: who may record and who may read, given and taken away by those who hold the admin scope.

The secret of a key is told once, when it is made; what is kept is its hash.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("keys", __name__, is_core=True)
