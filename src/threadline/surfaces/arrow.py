"""pyarrow, where it is installed: the one file that imports it, because it ships no type information."""

from __future__ import annotations

from typing import Any

from threadline.kernel.errors import InvalidValue


def arrow(doing: str) -> Any:
    """The library, with `parquet` in it. Raises `InvalidValue`, for ``reading`` or ``writing``, where it is missing."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        hint = "pip install 'threadline[parquet]'"
        raise InvalidValue(f"{doing} Parquet needs pyarrow, which is not installed", hint=hint) from None
    return pa
