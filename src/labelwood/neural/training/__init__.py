"""The training loop, the heads of its levels, and their optimiser."""
