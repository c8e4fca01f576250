"""Programs of the npm registry, run by npx: found, required or skipped."""

import os
import subprocess
from collections.abc import Mapping, Sequence

import pytest

from tests import missing


def run_npx(package: str, command: Sequence[str], *, found: str) -> str:
    """Return what a program says on standard output and standard error, without colours.

    Skips where there is no npx (fails where it is required) or the registry does not answer: a
    program that ends otherwise than with 0 has run only if it says `found`.
    """
    missing.skip_without("npx", package="npm")
    try:
        ran = subprocess.run(
            ["npx", "--yes", "--package", package, *command],
            capture_output=True,
            text=True,
            timeout=120,
            env=without_colours(os.environ),
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{package} cannot be fetched: the npm registry does not answer")
    said = ran.stdout + ran.stderr
    if ran.returncode == 0 or found in said:
        return said
    # Not what a machine lacks, but what it cannot reach at this moment.
    pytest.skip(f"{package} cannot be fetched from the npm registry: {said[-200:]}")


def without_colours(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which programs print plain text.

    Many of npm's programs colour what they print into a pipe where CI or FORCE_COLOR is set.
    """
    plain = {
        name: value for name, value in environment.items() if name not in ("CI", "FORCE_COLOR")
    }
    return {**plain, "NO_COLOR": "1"}
