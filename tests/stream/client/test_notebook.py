"""The notebook runs from top to bottom, and is stored without outputs."""

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.pages import ROOT

NOTEBOOK = ROOT / "docs" / "tutorials" / "analyst-notebook.ipynb"


def cells() -> list[dict[str, Any]]:
    found = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (found["nbformat"], found["metadata"]["kernelspec"]["language"]) == (4, "python")
    listed: list[dict[str, Any]] = found["cells"]
    return listed


def test_the_notebook_runs_and_its_bounds_hold_the_truth(capsys: pytest.CaptureFixture[str]):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("pandas")
    plt.switch_backend("agg")
    names: dict[str, Any] = {}
    try:
        for cell in cells():
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
        assert capsys.readouterr().out == "True None\n"
        shown = names["axes"].get_yticklabels()
        assert [label.get_text() for label in shown] == names["labels"]
        crosses = names["axes"].lines[-1]
        assert np.allclose(crosses.get_xdata(), [0.5, 0.25, 0.15, 0.1], atol=0.02)
        # Seven standard errors: by Bernstein's bound exceeded with probability below 1e-9.
        for entry, truth in zip(names["document"].distribution, crosses.get_xdata(), strict=True):
            assert abs(entry.share - truth) < 7 * entry.se
    finally:
        plt.close("all")


def test_the_notebook_is_stored_without_outputs():
    for cell in cells():
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_links_of_the_notebook_lead_to_files():
    text = "".join(line for cell in cells() for line in cell["source"])
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert all((NOTEBOOK.parent / link).exists() for link in links)
