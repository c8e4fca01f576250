"""Whether counts stay exact under faults, forged input, restarts and load."""
