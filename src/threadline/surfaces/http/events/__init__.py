"""Events on their way in: the wires, the limits, and the one writer."""
