"""The values of a collection: labels, sizes, grids, intervals, and their blocks."""
