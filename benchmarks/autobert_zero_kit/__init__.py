"""The parts of `benchmarks/autobert_zero.py`."""
