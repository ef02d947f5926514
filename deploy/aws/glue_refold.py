# ruff: noqa: INP001 — a script, handed to Glue as a file
"""The job of AWS Glue, or of `spark-submit`: everybody folded again from the lake, their states published there.

    --lake s3://bucket/lake --definitions s3://bucket/definitions [--workspace NAME]

Glue 5 installs Threadline by the job's parameter `--additional-python-modules`. See docs/spark.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from threadline.app import catalogue_of
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.spark import job
from threadline.exports.spark.recipe import recipe, texts_in


def main(arguments: Sequence[str]) -> None:
    """Run the job with the parameters of the command line; those that Glue adds for itself are passed over."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--lake", required=True)
    parser.add_argument("--definitions", default="")
    parser.add_argument("--workspace", default=None)
    given, _ = parser.parse_known_args(arguments)
    texts = texts_in(open_storage(given.definitions)) if given.definitions else ()
    done = job.refold(job.open_session(), Lake(open_storage(given.lake)), recipe(catalogue_of, texts), given.workspace)
    sys.stdout.write(f"{done.people} people folded from {done.events} events, into {done.files} files\n")


if __name__ == "__main__":
    main(sys.argv[1:])
