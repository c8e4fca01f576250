"""Figures and tables of the papers, drawn again beside exact values."""
