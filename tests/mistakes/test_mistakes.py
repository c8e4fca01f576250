"""Every mistake is refused at once, with the message that docs/mistakes.md gives."""

from pathlib import Path

from tests.mistakes.cases import MISTAKES
from tests.mistakes.page import page

DOCS = Path(__file__).parents[2] / "docs"


def test_docs_give_the_messages():
    assert sum(map(len, MISTAKES.values())) >= 60
    assert page() == (DOCS / "mistakes.md").read_text()
