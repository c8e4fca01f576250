"""docs/gateway.md shows the defaults."""

import re
import tomllib
from pathlib import Path

from ldpstream.agents.config import read_config
from tests.gateway.serving import TABLES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "gateway.md").read_text()


def test_the_page_shows_every_key_and_its_default():
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = tomllib.loads(block)
    assert shown["gateway"].pop("origins") == ["https://survey.example"]
    given = read_config({**TABLES, **shown}, base=Path(), environment={}).gateway
    assert given == read_config(TABLES, base=Path(), environment={}).gateway
    names = set(re.findall(r"^(?:# )?(\w+) =|with (\w+) =", block, re.MULTILINE))
    known = {first or second for first, second in names}
    assert known == {name.removesuffix("_ms") for name in vars(given)}
