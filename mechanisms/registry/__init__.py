"""Every mechanism by its permanent id, and proposals of parameters for a policy."""
