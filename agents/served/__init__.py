"""What HTTP, metrics and an app read of a running worker: its collections, clock and health."""
