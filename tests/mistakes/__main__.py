"""`python -m tests.mistakes` prints docs/mistakes.md."""

from tests.mistakes.page import page

print(page(), end="")
