"""Feature updates: once a day, what has changed in the features of everybody who was active lately is published.

What it promises: without the section nothing costs anything. With it, everybody who was active within a time that is
declared has a timer for a time of the day, in UTC. It compares the features with those that were published last, and
what differs becomes one event in the person's thread, which the feed shows, and a call of a webhook if a destination is
named. Whoever has not been active for longer is left alone until they come back.
"""
