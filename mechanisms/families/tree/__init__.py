"""Trees over the values, for ranges: a report is about one level of the tree."""
