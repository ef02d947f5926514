"""What answers questions about everybody: DuckDB over the lake, or over a copy of the log in columns."""
