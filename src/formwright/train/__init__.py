"""One readable training loop, its schedule, its losses and its checkpoints."""
