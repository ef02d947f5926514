"""A process that reads definitions, one text a line of its input: it says the number of each before it, and its end.

``python -m tests.laws.definition_reader``. It has a ceiling of memory, and each text has one of processor time: what
exceeds them ends this process, and the number that it said last is that of the text.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

from tests.laws.ingest import say
from threadline.app import catalogue, catalogue_of
from threadline.kernel.errors import InvalidDefinition

CPU_SECONDS_MAX = float(os.environ.get("THREADLINE_TEST_CPU_SECONDS", "10"))
MEMORY_BYTES_MAX = 1 << 30


def main() -> None:
    catalogue()
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY_BYTES_MAX, taken + MEMORY_BYTES_MAX))
    for number, line in enumerate(sys.stdin):
        say(str(number))
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_MAX)
        with suppress(InvalidDefinition):
            catalogue_of([("threadline.yaml", json.loads(line))])
        signal.setitimer(signal.ITIMER_PROF, 0)
    say("end")


if __name__ == "__main__":
    main()
