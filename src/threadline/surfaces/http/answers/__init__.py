"""What every address does with a request and its answer: routes, bodies, problems, bounds and counts."""
