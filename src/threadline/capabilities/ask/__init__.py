"""What answers questions about one person or everybody: analytics, search, exports, the state of a message."""
