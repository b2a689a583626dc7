"""What benchmarks/flexibench.py makes of its runs: latencies, and the packed table."""
