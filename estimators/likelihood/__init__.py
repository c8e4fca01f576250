"""The likelihood of counts on one ordered dimension: maximum, profile bounds, a smooth curve."""
