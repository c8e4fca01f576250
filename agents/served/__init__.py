"""The state of a running worker for HTTP, metrics and apps: collections, clock and health."""
