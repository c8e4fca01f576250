"""What state takes: memory, changelog bytes, and the time to read it back."""
