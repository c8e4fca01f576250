"""Checks of the files of pictures, before any work is done."""

from importlib.util import find_spec
from pathlib import Path

from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.mechanisms.base.lazy import brought


def check_picture(plot: str) -> None:
    """Refuse a picture that cannot be drawn."""
    if Path(plot).suffix.lower() != ".png":
        raise Refused(f"--plot: expected a file that ends in .png, got {plot}")
    if find_spec("matplotlib") is None:
        raise Refused(f"--plot: expected {brought('matplotlib', 'plots')}")
