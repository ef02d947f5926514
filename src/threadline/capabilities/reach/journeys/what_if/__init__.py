"""What journeys would have done: history replayed under a candidate and under the journeys in force."""
