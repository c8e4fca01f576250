"""The cost of state: memory, changelog bytes, and the time to read it back."""
