"""Pictures of mails: uploaded once, looked into before they are stored, and served under an address nobody guesses."""
