"""Plans as documents, tables and plots."""
