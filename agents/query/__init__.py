"""What may be asked of a collection: options of an estimate, linear queries."""
