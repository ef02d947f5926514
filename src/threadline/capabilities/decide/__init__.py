"""What decides, and is tried before it does: rules, what-if and drafts."""
