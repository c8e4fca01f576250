"""A day in the life of three collections on Apache Kafka, as one command (`tests.crash.day.run`)."""
