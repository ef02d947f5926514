"""What Threadline knows how to derive and decide: one folder each, pure, all of one inner shape."""
