"""What values a collection has: labels, sizes, grids, intervals, and their blocks."""
