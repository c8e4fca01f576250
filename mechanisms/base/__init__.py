"""Used by every other package of the mechanisms: errors, canonical JSON, checks, times, arrays."""
