"""Every mistake is refused at once, in words: those of docs/mistakes.md."""

from pathlib import Path

from tests.mistakes.cases import MISTAKES
from tests.mistakes.page import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_says_what_is_said():
    assert sum(map(len, MISTAKES.values())) >= 60
    assert page() == (DOCS / "mistakes.md").read_text()
