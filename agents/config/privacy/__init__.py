"""What a collection's policy means, in plain words, and what all its reports lose together.

Factors are exact, and rounded outward, so that no loss looks smaller than it is.
"""
