"""HTTP requests to a worker, and its answers as documents."""
