"""The store in a DynamoDB table."""
