"""Kafka and Faust: topics, ingest, windows, publishing, metrics, HTTP and the command line."""
