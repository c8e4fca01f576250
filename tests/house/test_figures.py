"""The figures are what docs/figures/draw.py draws, can be read in light and dark, and are used."""

import re
import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from itertools import product

import pytest

from tests.pages import ROOT, pages

FOLDER = ROOT / "docs" / "figures"
sys.path.insert(0, str(FOLDER))
draw, picture = import_module("draw"), import_module("picture")


@pytest.mark.parametrize("name", draw.PICTURES)
def test_a_figure_is_what_the_product_does_today(name: str):
    """`python docs/figures/draw.py` draws them again."""
    drawn = draw.PICTURES[name]().svg()
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == drawn
    ET.fromstring(drawn)


def test_every_figure_is_on_a_page():
    text = "".join((ROOT / page).read_text("utf-8") for page in pages())
    assert set(re.findall(r"figures/([\w-]+)\.svg", text)) == draw.PICTURES.keys()
    assert {path.stem for path in FOLDER.glob("*.svg")} == draw.PICTURES.keys()


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", picture.PALETTES.values())
def test_colours_can_be_told_from_their_ground(palette: dict[str, str]):
    for colour, ground in product(("text", "soft", "main", "warn", "edge"), ("ground", "box")):
        low, high = sorted(luminance(palette[one]) for one in (colour, ground))
        contrast = (high + 0.05) / (low + 0.05)
        assert contrast > (3 if colour == "edge" else 4.5), (colour, ground, contrast)
