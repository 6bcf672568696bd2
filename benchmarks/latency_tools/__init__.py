"""What `benchmarks/latency.py` is made of."""
