"""Pages that promise to have something of every mechanism have it."""

import re
from typing import Final

from ldpstream.mechanisms import MECHANISMS
from tests.pages import ROOT, blocks

EXAMPLES: Final = "docs/concepts/mechanisms.md"


def test_every_mechanism_has_a_worked_example():
    """A section of its name, with a session in which a report's bytes become numbers."""
    headings = re.findall("^## `(.+)`$", (ROOT / EXAMPLES).read_text("utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(MECHANISMS)
    sessions = {one.heading.strip("`"): one.code for one in blocks(EXAMPLES)}
    for name in MECHANISMS:
        code = sessions[name].replace("\n... ", " ")
        assert re.search(rf'example\(\s*"{name}"', code), name
        assert re.search(r'adds\(\w+, "[0-9a-f]+"\)\n\[', code), name
