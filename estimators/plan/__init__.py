"""Plans: what every mechanism that satisfies a policy would estimate, and at what cost."""
