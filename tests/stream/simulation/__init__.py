"""A seeded simulation that drives the product's state machine and tries to break it."""
