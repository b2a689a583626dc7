"""What benchmarks/search.py compares: a made-up problem, the contestants, and the clocks."""
