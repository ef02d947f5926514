"""The tour of the console: a shop with a history, and pictures of its screens, made by a script."""
