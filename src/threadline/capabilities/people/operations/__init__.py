"""What can be asked about people: one, many, tags, and joining and splitting them."""
