"""The collections of a worker, from messages read to published estimates."""
