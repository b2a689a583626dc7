"""Parts of benchmarks/flexibench.py: the trainings, their latencies, and the packed table."""
