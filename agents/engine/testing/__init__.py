"""For users' tests: a collection's pipeline in process, without a broker."""
