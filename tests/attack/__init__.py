"""Attacks on the product from outside: hostile clients, forged records, others' web sites.

`python -m tests.attack` runs every attack and prints a row for each. An attack runs commands and
knows nothing of their code.
"""
