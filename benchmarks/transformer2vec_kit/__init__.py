"""Quality of an embedding, for benchmarks/transformer2vec.py."""
