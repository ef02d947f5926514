"""The methods of a store in this process and of a server; `operations.pyi` has their types."""

from threadline.surfaces.python.methods import Operations

AsyncOperations = Operations
"""The same to be awaited, because their `call` is."""

__all__ = ["AsyncOperations", "Operations"]
