"""How many calls, in how many files, lead from a frame to a final and through an answer.

`python -m benchmarks.journeys --calls WORD` lists them.
"""

import pytest
from benchmarks.journeys import count

from tests.checkouts import HERE

LIMITS = {"a frame to a final": (445, 28), "a range over HTTP": (277, 29)}


@pytest.fixture(scope="module")
def journeys() -> dict[str, list[str]]:
    found: dict[str, list[str]] = count(HERE)["journeys"]
    return found


@pytest.mark.parametrize("name", LIMITS)
def test_a_story_takes_few_calls_in_few_files(name: str, journeys: dict[str, list[str]]):
    calls = journeys[name]
    files = {call.split()[0] for call in calls}
    most_calls, most_files = LIMITS[name]
    assert len(calls) <= most_calls
    assert len(files) <= most_files, sorted(files)
