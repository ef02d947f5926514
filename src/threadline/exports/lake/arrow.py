"""pyarrow, where it is installed: the one file of the lake that imports it, because it ships no type information."""

from __future__ import annotations

from typing import Any

from threadline.kernel.errors import InvalidSetting


def arrow() -> Any:
    """The library, with `compute` and `parquet` in it. Raises `InvalidSetting` where it is missing."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        hint = "pip install 'threadline[lake]'"
        raise InvalidSetting("the lake needs pyarrow, which is not installed", hint=hint) from None
    return pa
