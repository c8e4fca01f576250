"""What attackers, clocks and slips do to the product from outside, each a command of its own.

`python -m tests.attack` runs every attack against two checkouts, an earlier one and this one, and
prints a row for each. An attack starts the commands of the checkout that it is given and knows
nothing of its code, so the same attack judges both.
"""
