"""What `check` finds out."""
