"""Kafka clients, topics and permissions, and what the broker's answers mean."""
