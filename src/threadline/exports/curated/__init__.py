"""Curated tables over everybody: one schema, from which views, Parquet, warehouse SQL and dbt sources come."""
