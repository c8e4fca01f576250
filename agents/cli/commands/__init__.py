"""What each command is called with; its work is imported once it runs."""
