"""Who needs how much protection: budgets for every pair of values, their order and algebra."""
