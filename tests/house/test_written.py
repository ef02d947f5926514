"""What `make format` writes from the operations is as they are now."""

from __future__ import annotations

from threadline.app import operations
from threadline.surfaces.cli import listing
from threadline.surfaces.python import stub


def test_list_of_commands_has_each_operation_that_ships() -> None:
    assert listing.FILE.read_text() == listing.text(), "run `make format`"
    assert listing.shipped() == listing.listed(operations())


def test_types_of_the_python_methods_have_each_operation_that_ships() -> None:
    assert stub.FILE.read_text() == stub.text(), "run `make format`"
