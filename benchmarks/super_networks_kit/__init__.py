"""Parts of the benchmark of super-networks."""
