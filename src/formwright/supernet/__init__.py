"""Shared weights: which of them matter, in which order they stand, and how many models learn at once."""
