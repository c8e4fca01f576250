"""What may be asked of a collection: one declaration, from which every way of asking follows."""
