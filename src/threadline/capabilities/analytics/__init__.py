"""Questions about everybody: counts over time, funnels, retention, sessions and paths, as SQL over the events."""
