"""What can be asked about memory: facts, variables, lineage, derivations, and corrections."""
