"""Where the values of a worker's state are kept: in memory, or in RocksDB."""
