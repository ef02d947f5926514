"""A client of DynamoDB on a bad network: throttled, cut off before and after the server acts, told things twice."""

from __future__ import annotations

import json
import threading
import time
from random import Random
from typing import Any

import urllib3

from threadline.stores.dynamodb.client import Client

THROTTLED = json.dumps({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException"}).encode()


class FaultyClient(Client):
    """Every request has a chance to go wrong in one of the ways in which requests go wrong on AWS."""

    def __init__(self, address: Any, random: Random, chance: float, **options: Any) -> None:
        super().__init__(address, **options)
        self._random = random
        self._chance = chance
        self._draw_lock = threading.Lock()
        self._records: list[Any] = []
        self.faults: dict[str, int] = {}

    def post(self, endpoint: str, headers: dict[str, str], data: bytes) -> tuple[int, bytes]:
        with self._draw_lock:
            fault = self._random.choices(
                ("none", "before", "after", "throttled", "broken", "late"),
                (1 - self._chance, *[self._chance / 5] * 5),
            )[0]
            pause = self._random.uniform(0.01, 0.15)
            self.faults[fault] = self.faults.get(fault, 0) + 1
        if fault == "before":
            raise urllib3.exceptions.ProtocolError("cut off before the server had it")
        if fault == "throttled":
            return 400, THROTTLED
        if fault == "broken":
            return 500, b"<html>"
        if fault == "late":
            # The client gives up and asks again while the first request is still on its way.
            threading.Thread(target=self._post_late, args=(pause, endpoint, headers, data), daemon=True).start()
            raise urllib3.exceptions.ReadTimeoutError(None, endpoint, "no answer in time")  # type: ignore[arg-type]
        answer = super().post(endpoint, headers, data)
        if fault == "after":
            raise urllib3.exceptions.ProtocolError("cut off after the server had done it")
        return self._repeated(headers, *answer)

    def _post_late(self, pause: float, endpoint: str, headers: dict[str, str], data: bytes) -> None:
        time.sleep(pause)
        try:
            super().post(endpoint, headers, data)
        except urllib3.exceptions.HTTPError:
            return  # then it was lost altogether

    def _repeated(self, headers: dict[str, str], status: int, content: bytes) -> tuple[int, bytes]:
        """Records of a stream come twice: at once, and once more later."""
        if not headers["x-amz-target"].endswith("GetRecords") or status != 200:
            return status, content
        answer = json.loads(content)
        with self._draw_lock:
            fresh = answer["Records"]
            old = self._random.sample(self._records, min(3, len(self._records)))
            self._records = (self._records + fresh)[-200:]
        answer["Records"] = [*old, *[record for record in fresh for _ in range(2)]] if fresh else fresh
        return status, json.dumps(answer).encode()
