"""The public test kit: laws for stores and projections, seeded worlds, an auditor; nothing here runs in production."""
