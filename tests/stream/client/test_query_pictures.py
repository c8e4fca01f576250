"""Plots in a terminal: whiskers, and lines over time."""

import pytest

from ldpstream.agents.cli.terminal.plots import Marks, Point, sparkline, whisker
from tests.stream.querying import five_minutes, ldpstream, windows
from tests.stream.serving import Pipeline


@pytest.fixture
def pipeline() -> Pipeline:
    return five_minutes()


async def test_plots_show_values_bounds_and_lines_over_time(url: str) -> None:
    (document,) = await windows(url, "city")
    result = await ldpstream("query", url, "city", "--plot")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    for entry in [*document["distribution"], *document["ranges"]]:
        share = f"{100 * entry['share']:.2f}%"
        drawn = [text for text in lines if share in text and "●" in text]
        assert drawn
        assert all("─" in text for text in drawn)
    course = await ldpstream("query", url, "city", "--plot", "--last", "3", "--quantile", "1.5")
    assert course.exit_code == 2
    course = await ldpstream("query", url, "city", "--plot", "--last", "3")
    assert "range downtown" in course.stdout
    assert sum("●" in text for text in course.stdout.splitlines()) == 3
    assert course.stdout.count("(open)") == 3
    ages = await ldpstream(
        "query", url, "ages", "--plot", "--all", "--linear", "w:" + "1," * 9 + "1"
    )
    assert "quantile 0.5" in ages.stdout
    assert "mean w" in ages.stdout
    rides = await ldpstream("query", url, "rides", "--plot")
    assert rides.exit_code == 1


def test_a_whisker_has_its_marks_where_the_numbers_are() -> None:
    marks = Marks("-", "o", "|", ".:")
    assert whisker(Point(0.2, 0.3, 0.5, ""), (0.0, 1.0), 11, marks) == "| -o--"
    assert whisker(Point(-0.5, 0.0, 0.5, ""), (-1.0, 1.0), 9, marks) == "  --o--"
    assert whisker(Point(None, 1.0, None, ""), (0.0, 1.0), 5, marks) == "|   o"
    assert whisker(Point(None, None, None, ""), (0.0, 1.0), 5, marks) == "|"
    assert whisker(Point(2.0, 2.0, 2.0, ""), (2.0, 2.0), 5, marks) == "  o"
    assert sparkline([0.0, None, 1.0, 0.4], marks) == ". :."
    assert sparkline([3.0, 3.0], marks) == ".."
    assert sparkline([None], marks) == ""
