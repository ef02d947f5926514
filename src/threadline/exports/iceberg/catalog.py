"""The catalogue that lists the tables: a SQLite file, AWS Glue, a REST service, or any other database of SQLAlchemy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source
from threadline.kernel.ids import short_hash

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NAME = "threadline"
"""What the catalogue is called in PyIceberg's own configuration."""
NAMESPACE_PREFIX = "threadline_"
WORKSPACE = "threadline.workspace"
"""The property of a namespace that names its workspace."""
_PLAIN = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def open_catalog(url: str, warehouse: str) -> Catalog:
    """The catalogue of a URL; tables that are new are created below ``warehouse``, a folder or an S3 URL.

    ``url``: the path of a SQLite file, ``glue``, the http(s) address of a REST service, or a SQLAlchemy URL. Whatever
    else a catalogue needs (a token, the endpoint and region of S3) is taken from PyIceberg's configuration of the
    catalogue ``threadline``, such as `PYICEBERG_CATALOG__THREADLINE__S3__ENDPOINT`. Raises `InvalidSetting`.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise InvalidSetting("Iceberg tables need pyiceberg", hint=from_source("lake")) from None
    known = {"warehouse": warehouse, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    properties = _properties(url, warehouse)
    try:
        catalog = load_catalog(NAME, **properties, **known)
        catalog.list_namespaces()
    except Exception as error:
        raise InvalidSetting(f"the Iceberg catalogue {_shown(url)} cannot be opened: {error}") from error
    return catalog


def _properties(url: str, warehouse: str) -> dict[str, str]:
    if url == "glue":
        return {"type": "glue"}
    if url.startswith(("http://", "https://")):
        return {"type": "rest", "uri": url}
    if "://" in url:
        return {"type": "sql", "uri": url}
    if not url and urlsplit(warehouse).scheme not in ("", "file"):
        raise InvalidSetting(
            f"the tables in {warehouse} need a catalogue",
            hint="THREADLINE_ICEBERG_CATALOG names one: glue, a REST address, or a SQLite file on this machine.",
        )
    file = Path(url) if url else Path(urlsplit(warehouse).path) / "catalog.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{file.absolute()}"}


def _shown(url: str) -> str:
    """A URL without its password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def namespace_of(workspace: str) -> str:
    """The namespace of a workspace: lower case letters, digits and underscores, as Glue and Athena want them.

    A workspace of another form has a hash at the end; two underscores cannot occur in a plain name.
    """
    if _PLAIN.fullmatch(workspace) and len(workspace) <= 100:
        return f"{NAMESPACE_PREFIX}{workspace}"
    plain = "_".join(re.findall("[a-z0-9]+", workspace.lower()))[:80]
    return f"{NAMESPACE_PREFIX}{plain}__{short_hash(workspace)}"
