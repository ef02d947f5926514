"""The lake: every committed event in Parquet files, in a folder or in S3; a manifest says which files count."""
