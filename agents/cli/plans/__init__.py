"""Plans as documents and tables."""
