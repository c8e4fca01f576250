"""All attacks at once, at full rate, during honest load: `python -m benchmarks.siege`."""
