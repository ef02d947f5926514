"""Refolds on one Spark session, in a process of its own: PySpark does not stand where the tests do.

    python driver.py FOLDER

Folds every lake ``FOLDER/*/lake`` with the definitions beside it, by the script of AWS Glue, on two workers. At the
last lake the first attempt at each task is killed; then all attempts are. It prints what became of each.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadline.app import catalogue_of
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.spark import job
from threadline.exports.spark.recipe import recipe
from threadline.kernel.errors import Unavailable

ATTEMPTS = 2
GLUE = Path(__file__).parents[3] / "deploy/aws/glue_refold.py"


def killing(attempts: int, folding: Callable[..., Callable[[Any], Any]]) -> Callable[..., Callable[[Any], Any]]:
    """Folds as usual, but the first attempts at a task end with the death of their worker, halfway through."""

    def made(*given: Any) -> Callable[[Any], Any]:
        fold = folding(*given)

        def dying(events: Any) -> Any:
            from pyspark import TaskContext

            done = fold(events)
            if TaskContext.get().attemptNumber() < attempts:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return dying

    return made


def main(folder: Path) -> None:
    session = job.open_session(f"local[2,{ATTEMPTS}]")
    session.sparkContext.setLogLevel("OFF")
    folding = job.folding
    lakes = sorted(folder.glob("*/lake"))
    glue = runpy.run_path(str(GLUE))["main"]
    for lake in lakes:
        job.folding = killing(1, folding) if lake == lakes[-1] else folding
        definitions = ["--definitions", str(lake.parent / "definitions")]
        glue(["--JOB_NAME", "x", "--lake", str(lake), *(definitions if Path(definitions[1]).exists() else [])])
    job.folding = killing(ATTEMPTS, folding)
    try:
        job.refold(session, Lake(open_storage(str(lakes[-1]))), recipe(catalogue_of))
    except Unavailable as error:
        sys.stdout.write(json.dumps({"failed": str(error)}) + "\n")
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
