"""The export of a person: everything that is known of them in one archive, for machines and for the person.

What goes into it is declared where it belongs, in `personal.py` of each capability; see `threadline.kernel.personal`.
"""

from threadline.kernel.capability import Capability

CAPABILITY = Capability("export", __name__, is_core=True)
