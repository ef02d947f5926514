"""What is known of a person: who they are, features, memory, interests, segments, streaks, points and boards."""
