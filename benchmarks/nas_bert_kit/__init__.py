"""Parts of `benchmarks/nas_bert.py`."""
