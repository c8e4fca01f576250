"""A day in the life of three collections on Apache Kafka: `python -m tests.crash.day.run`."""
