"""A collection's spec and the bytes of its reports."""
