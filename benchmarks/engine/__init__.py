"""The whole engine compared with its peers, in one run: `python -m benchmarks.engine`."""
