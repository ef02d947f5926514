"""Everybody folded again from the lake: by DuckDB on one machine, by Spark on many, through the engine's own folds."""
