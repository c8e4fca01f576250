"""Kafka clients, topics and permissions, and explanations of the broker's errors."""
