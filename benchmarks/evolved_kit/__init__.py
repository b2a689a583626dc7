"""Parts of `benchmarks/evolved_transformer.py`."""
