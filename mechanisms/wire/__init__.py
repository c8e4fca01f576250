"""The spec of a collection, and the bytes of its reports."""
