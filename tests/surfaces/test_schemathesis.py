"""No answer to anything that Schemathesis makes of the OpenAPI document is one that the document does not allow."""

from __future__ import annotations

import os
from contextlib import closing
from random import Random

import pytest
from starlette.testclient import TestClient

from tests.repeating import seed
from tests.surfaces.conftest import Clock
from threadline.app import open_engine
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application

IS_TORTURE = os.environ.get("THREADLINE_TEST_PROFILE") == "torture"
SHARE = 1 if IS_TORTURE else 2
"""One in so many operations is tried; the run's seed draws which."""


def documented() -> list[tuple[str, str]]:
    """Method and path of every operation in the document."""
    with closing(open_engine("memory:", Settings(), Clock())) as engine:
        answer = TestClient(Application(engine, Settings())).get("/openapi.json")
        assert answer.status_code == 200
        return [(method.upper(), path) for path, methods in answer.json()["paths"].items() for method in methods]


OPERATIONS = documented()


def drawn() -> list[tuple[str, str]]:
    chosen = Random(f"{seed()} operations").sample(range(len(OPERATIONS)), len(OPERATIONS) // SHARE)
    return [OPERATIONS[number] for number in sorted(chosen)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), drawn())
def test_no_answer_breaks_the_document(method: str, path: str) -> None:
    from tests.surfaces.documented_answers import keeps_to_the_document

    keeps_to_the_document(method, path)


def test_the_document_has_operations_to_draw_from() -> None:
    assert len(OPERATIONS) > 200
