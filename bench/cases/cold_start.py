"""A function of Lambda from the start of its process to its first answer, without the network."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from bench.row import Goal, Row
from bench.stage import Stage
from bench.trees import OURS

STARTS = 7
SCRIPT = """
import time
began = time.perf_counter()
import json
from threadline.surfaces.lambda_.http import handler
imported = time.perf_counter()
about = {"domainName": "x", "stage": "$default", "http": {"method": "POST", "sourceIp": "192.0.2.7"}}
event = {"version": "2.0", "rawPath": "/v1/track", "rawQueryString": "", "headers": {},
         "requestContext": about, "isBase64Encoded": False,
         "body": json.dumps({"writeKey": "benchmark", "userId": "ada", "event": "Signed Up"})}
answer = handler(event)
assert json.loads(answer["body"])["accepted"] == 1, answer
print(json.dumps([imported - began, time.perf_counter() - began, time.process_time()]))
"""


def measure(stage: Stage) -> list[Row]:
    """Seconds to the first recorded event on a store in memory; bytecode is there, as in a package."""
    environment = OURS.environment() | {
        "PYTHONPYCACHEPREFIX": str(stage.folder / "bytecode"),
        "THREADLINE_STORE": "memory:",
        "THREADLINE_WRITE_KEYS": "benchmark",
        "THREADLINE_ACCESS_LOG": "false",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for _ in range(STARTS + 1):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout))
    imports, answers, cpu = (median(each) for each in zip(*found[1:], strict=True))  # the first one compiles
    note = f"of it {imports:.2f} s until everything that the handler names is imported; {cpu:.2f} s of CPU"
    goal, aim = Goal("ours", most=1.0), Goal("ours", most=0.5)
    return [Row("Lambda cold start: import to first answer", answers, "s", None, goal, note, aim)]
