"""What HTTP and metrics see of a running worker: its collections, clock and broker's health."""
