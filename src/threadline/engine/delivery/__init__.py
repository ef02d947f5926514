"""What is due happens once: timers become events, effects go to senders."""
