"""What may be asked of a collection: one declaration, from which all interfaces follow."""
