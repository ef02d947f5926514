"""Reading a file of the lake: what it leaves behind in the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_READ = """
import os
import sys
from pathlib import Path

from threadline.exports.lake.files import read_table
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import File, Lake
from threadline.exports.lake.schema import pa

pa.cpu_count()
table = pa.table({f"column_{index}": list(range(1_000)) for index in range(20)})
pa.parquet.write_table(table, sys.argv[1] + "/some.parquet")
file = File(
    name="some.parquet", workspace="default", table="events", first=1, last=1_000, rows=1_000, bytes=0, sha256=""
)
lake = Lake(FolderStorage(Path(sys.argv[1])))
before = set(os.listdir("/proc/self/task"))
assert read_table(lake, file).num_rows == 1_000
print(len(set(os.listdir("/proc/self/task")) - before))
"""


def test_reading_a_file_starts_no_thread_that_could_abort_a_process_that_ends(tmp_path: Path) -> None:
    # A worker of Arrow's that lets go of bytes of Python's while the interpreter ends takes the process with it.
    read = subprocess.run([sys.executable, "-c", _READ, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (read.stdout.strip(), read.stderr) == ("0", "")
