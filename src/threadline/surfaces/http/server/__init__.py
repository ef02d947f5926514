"""The process: the application, connections, reloads, and its end."""
