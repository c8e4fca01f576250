"""Every mistake is refused at once, with the recorded message."""

from pathlib import Path

from tests.mistakes.cases import MISTAKES
from tests.mistakes.page import page

RECORDED = Path(__file__).parent / "mistakes.md"


def test_messages_are_those_recorded():
    assert sum(map(len, MISTAKES.values())) >= 60
    assert page() == RECORDED.read_text(), (
        "record them again: python -m tests.mistakes > tests/mistakes/mistakes.md"
    )
