"""What each capability must say of a person, reckoned slowly from what was told; nothing here knows a fold."""
