"""A training set on Spark, in a process of its own: python driver.py LAKE DEFINITIONS ASKED OUT."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from threadline.app import catalogue_of
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.spark.job import open_session
from threadline.exports.spark.recipe import recipe
from threadline.exports.training.historical import Asked
from threadline.exports.training.spark import training_frame

lake, definitions, asked, out = map(Path, sys.argv[1:])
refs, ats = json.loads(asked.read_text())
made = recipe(catalogue_of, ((definitions.name, definitions.read_text()),))
frame = training_frame(open_session("local[1]"), made, Lake(open_storage(str(lake))), "default", Asked(refs, ats))
out.write_text(json.dumps([row.asDict() for row in frame.collect()]))
