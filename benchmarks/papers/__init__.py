"""Figures and tables of the papers, computed again and compared with exact values."""
