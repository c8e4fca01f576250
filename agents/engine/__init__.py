"""One worker: its collections, from messages read to published estimates, stores and metrics."""
