"""What can be asked about events: recorded, read, followed, corrected, and what the catalogue has."""
