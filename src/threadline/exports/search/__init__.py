"""Search indexes: one embedded beside the store, one in OpenSearch. Both derive from the log alone."""
