"""Handlers for AWS Lambda: HTTP, SQS, DynamoDB Streams and EventBridge Scheduler, on one engine a process."""

from __future__ import annotations

from threadline.surfaces.composition import Composition

__all__ = ["root"]


def root() -> Composition:
    """The composition root, which is above every surface: Lambda begins here, and this is where it reaches up."""
    from threadline.app import composition

    return composition()
