"""Stores for the values of a worker's state: memory, or RocksDB."""
