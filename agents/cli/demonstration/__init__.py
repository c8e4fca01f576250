"""The demonstration: the embedded broker, a worker and simulated devices, next to the truth."""
