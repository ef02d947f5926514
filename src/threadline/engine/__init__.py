"""The moving parts, written once: catalogue, record, ask, refold, dispatch, feed."""
