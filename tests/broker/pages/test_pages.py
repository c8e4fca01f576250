"""Guides and pages whose commands and programs run one after the other, as they are."""

from pathlib import Path

import pytest

from tests.pages import Place, agrees, blocks


@pytest.mark.parametrize(
    "page",
    [
        "docs/how-to/choose-policy.md",
        "docs/how-to/read-bounds.md",
        "docs/how-to/limit-yearly-loss.md",
        "docs/how-to/size.md",
        "docs/reference/channel-files.md",
        "docs/concepts/privacy.md",
        "docs/approve/checklist.md",
        "docs/approve/what-is-proved.md",
        "docs/approve/verify-it-yourself.md",
        "docs/approve/impact-assessment.md",
    ],
)
def test_commands_print_what_the_page_shows(tmp_path: Path, page: str) -> None:
    place = Place.made(tmp_path, {})
    # The sessions of Python are run by tests/house/test_docstrings.py.
    listed = [one for one in blocks(page) if one.language != "pycon"]
    for block in listed:
        assert block.language in {"sh", "python", "toml"}
        if block.language == "toml":
            (tmp_path / "ldpstream.toml").write_text(block.code)
            continue
        said = (
            place.shell(block.code)
            if block.language == "sh"
            else place.run("python", "-c", block.code)
        )
        assert not block.output or agrees(said, block), f"{block.code}{said}"
    if any(block.language == "toml" for block in listed):
        place.shell("ldpstream certify")
