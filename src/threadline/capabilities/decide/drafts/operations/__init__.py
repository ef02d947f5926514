"""The operations on definitions that somebody is writing; none of them writes."""
