"""Files of history into the store: how they are read, their rows as checked events, and the recording of these."""
