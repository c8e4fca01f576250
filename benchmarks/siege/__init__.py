"""All attacks at once, at full rate, beside honest load: `python -m benchmarks.siege`."""
