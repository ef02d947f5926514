"""Training sets at scale: the vectors of many people at many instants, read from a lake, equal to those of a store."""
