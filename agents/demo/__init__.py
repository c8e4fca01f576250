"""The demonstration: an embedded broker, a worker, and the simulated devices of a city."""
