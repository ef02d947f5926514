"""pyarrow, where it is installed: the one file that imports it, because it ships no type information."""

from __future__ import annotations

from typing import Any

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source


def arrow(doing: str, extra: str = "parquet") -> Any:
    """The library, with `compute` and `parquet` in it. Raises `InvalidSetting`, for ``reading`` or ``writing``, where
    it is missing."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        hint = from_source(extra)
        raise InvalidSetting(f"{doing} Parquet needs pyarrow, which is not installed", hint=hint) from None
    return pa
