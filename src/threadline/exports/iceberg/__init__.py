"""Iceberg tables of the lake's rows: each commit names the log position that it reaches, so that no row comes twice."""
