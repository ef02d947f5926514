"""HTTP: Segment and CloudEvents in, operations out, one process with one writer."""
