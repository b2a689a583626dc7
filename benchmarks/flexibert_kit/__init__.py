"""The parts of `benchmarks/flexibert.py`."""
