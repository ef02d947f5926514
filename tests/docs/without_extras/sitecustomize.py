"""Hides what comes with extras from a process that has this folder on its path, as if the package were alone."""

import sys

for name in ("boto3", "botocore", "httpx", "joserfc", "jsonschema_rs", "psycopg", "pyarrow", "re2", "redis", "zen"):
    sys.modules[name] = None  # type: ignore[assignment]
