"""What is written about the addresses: OpenAPI, its pages, and the codes of errors."""
