"""Committed events to whoever wants to be told: topics of Amazon SNS and queues of SQS, at least once."""
