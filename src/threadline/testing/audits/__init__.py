"""What each capability must say of a person, computed slowly from what was told; nothing here knows a fold."""
