"""The stores: one backend each, behind the port of `kernel/store.py`."""
