"""What leaves Threadline for other engines: lake, curated tables, Iceberg, Spark, search, queues."""
