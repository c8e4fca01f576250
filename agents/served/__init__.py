"""What HTTP and metrics read of a running worker: its collections, clock and broker's health."""
