"""Linear queries of a statistic: values, sets, ranges, sums of weights."""
