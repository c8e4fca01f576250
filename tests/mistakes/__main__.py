"""`python -m tests.mistakes` prints what mistakes.md in this folder records."""

from tests.mistakes.page import page

print(page(), end="")
