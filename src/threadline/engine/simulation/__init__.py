"""History replayed in another way, in memory, where nothing can be sent."""
