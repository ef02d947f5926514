"""What can be asked about points: balance, ledger, spending, corrections, and the tables in force."""
