"""The whole engine beside its peers, in one run: `python -m benchmarks.engine`."""
