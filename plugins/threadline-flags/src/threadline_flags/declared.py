"""What the definitions of flags make: the section, the operations, the addresses, and what they rely on."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.kernel.policy import Reliance
from threadline_flags.definition import FLAGS, read_flags
from threadline_flags.ofrep import routes
from threadline_flags.operations import operations


def declare(definitions: Definitions) -> list[Any]:
    """Everything that the flags shape."""
    flags = read_flags(definitions)
    reads = tuple(read for flag in flags.values() for read in flag.reads)
    return [FLAGS.declared, Reliance("flags", reads), *operations(flags), *routes(flags)]
