"""Groups of values that are hidden in a blanket of reports of all groups."""
