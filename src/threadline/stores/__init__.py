"""Where threads are kept: one file per backend, each behind the port of `kernel/store.py`."""
