"""Ways in and out: each renders the operations in its own manner and holds no logic of its own."""
