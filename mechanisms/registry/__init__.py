"""All mechanisms by permanent id, and the mechanisms that a planner proposes for a policy."""
