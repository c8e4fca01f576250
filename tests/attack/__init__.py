"""Attacks on the product from outside: hostile clients, wrong clocks, and slips of operators.

`python -m tests.attack` runs every attack against two checkouts, an earlier one and this one, and
prints a row for each. An attack starts the commands of the checkout that it is given and knows
nothing of its code, so the same attack judges both.
"""
