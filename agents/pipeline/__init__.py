"""A worker's collections: from what was read to won heads and published estimates."""
