"""What everything else stands on: events, definitions, conditions, schemas, webhooks, and work in the background."""
