"""Plans as documents, tables and pictures."""
