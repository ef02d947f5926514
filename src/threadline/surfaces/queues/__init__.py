"""Events from queues: what a message says, its events recorded, and which messages are done."""
