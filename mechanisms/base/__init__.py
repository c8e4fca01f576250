"""What every other room of the mechanisms uses: errors, canonical JSON, checks, times, arrays."""
