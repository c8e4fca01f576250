"""`publish.every = "off"`: no document shows open windows, and published ones state their loss."""

import asyncio
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.config import CollectionConfig, ConfigError
from ldpstream.agents.config.privacy.statement import TRUST
from ldpstream.agents.document.build import build_document
from ldpstream.agents.engine.contexts import make_context
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.view import answer
from ldpstream.agents.web.computation import ComputeQueues
from ldpstream.agents.web.description import describe_collection
from ldpstream.agents.web.events import Feed
from tests.seeded import SeededEntropy
from tests.stream.cli import configured, configured_modes, invoke
from tests.stream.simulation import curious
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.setting import Setting

MODES = """
[collection.modes]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { values = ["bus", "train", "walk", "car"] }
"""
OFF = 'publish = { every = "off" }\n'
BLOCKS = MODES.replace('"car"] }', '"car"], blocks = 2 }')


def document(config: CollectionConfig, *, n: int = 400, **keywords: Any) -> dict[str, Any]:
    mechanism = config.spec.mechanism
    statistic = mechanism.empty()
    values = np.arange(n) % mechanism.size
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(3)))
    totals = WindowTotals(0, 3_600_000, statistic, n, late=0, rejected=0)
    asked: dict[str, Any] = {"window": (0, 3_600_000), "final": True, **keywords}
    return json.loads(build_document(config, totals, **asked).to_json())


def test_finals_and_the_privacy_statement_say_what_publishing_costs(tmp_path: Path):
    config = configured_modes(tmp_path, MODES + OFF)
    central = document(config)["central"]
    assert central == {"epsilon": pytest.approx(0.4586, abs=2e-3), "delta": 1e-8, "reports": 100}
    for other in ({"final": False}, {"window": None}, {"n": 50}):
        assert "central" not in document(config, **other)
    (said,) = [one for one in config.privacy.protected if "Published documents" in one]
    assert "factor of 2.72 are hidden up to a factor of 1.59 (epsilon 0.45" in said
    assert said.endswith(TRUST)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        (MODES, 1),
        (MODES + OFF, 100),
        (MODES + OFF + "minimum = 300\n", 300),
        # How many others are in the same block is not known.
        (BLOCKS + OFF, 1),
        (BLOCKS + OFF + "minimum_block = 20\n", 20),
        (BLOCKS + "minimum_block = 20\n", 1),
    ],
)
def test_the_smallest_part_that_can_be_asked_for(tmp_path: Path, text: str, least: int):
    config = configured_modes(tmp_path, text)
    assert config.smallest_part == least
    assert (config.central is None) is (least == 1)
    assert ("central" in document(config)) is (least > 1)


def test_no_central_loss_is_stated_where_a_report_loses_no_more(tmp_path: Path):
    far = 'mechanism = "l1-geometric"\nepsilon = 3.0\ndomain = { size = 30 }\n'
    config = configured_modes(tmp_path, "[collection.modes]\n" + far + OFF)
    assert config.smallest_part == 100
    assert config.central is None


def test_certify_states_the_central_loss_of_n_reports(tmp_path: Path):
    file = configured(tmp_path, MODES + OFF)

    def published(*asked: str) -> dict[str, Any]:
        result = invoke("certify", "-c", str(file), *asked)
        return json.loads(result.stdout)["collections"][0]["published"]

    (loss,) = published("--published", "100")["losses"]
    (less,) = published("--published", "100", "--delta", "1e-4")["losses"]
    assert loss["budget"] == 1.0
    assert loss["bound"] == "blanket"
    assert less["epsilon"] < 0.8 * loss["epsilon"] < 0.4
    assert published("--published", "100")["trust"] == TRUST
    more = published("--published", "101")
    assert more["losses"] is None
    assert more["why"] == (
        "documents may tell of as few reports as 100, by minimum: "
        "ask for --published 100, or set minimum = 101"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MODES, 'open windows are published, too: it needs publish.every = "off"'),
        (BLOCKS + OFF, "documents may tell of as few reports as 1, by minimum_block: ask for"),
    ],
)
def test_certify_says_why_it_states_no_central_loss(tmp_path: Path, text: str, why: str):
    result = invoke("certify", "-c", str(configured(tmp_path, text)), "--published", "50")
    (certificate,) = json.loads(result.stdout)["collections"]
    assert certificate["published"]["losses"] is None
    assert certificate["published"]["why"].startswith(why)


def test_without_a_minimum_open_panes_cannot_be_kept_back(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"modes.publish.every: .* minimum of at least 2"):
        configured_modes(tmp_path, MODES + OFF + "minimum = 1\n")


class Closed(curious.CuriousWorld):
    """A world that answers for closed panes alone."""

    def choose_setting(self, rng: random.Random) -> Setting:
        window, minimum = rng.randrange(len(curious.WINDOWS)), rng.choice([2, 3, 5])
        return Setting(curious._context(window, 16, minimum, None), start_ms=0, ahead_ms=0)

    def ask(self, replicas: Any) -> None:
        super().ask(replicas)
        if all(replica.head is not None for replica in replicas):
            closed = min(replica.head.closed for replica in replicas)
            pane_ms = self.context.window.pane_ms
            span = (closed + 1) * pane_ms, (closed + 9) * pane_ms
            if span[0] >= 0:
                assert not answer(self.context, replicas, *span, final=False).chunks
                self.checks.spans += 1


def test_open_panes_are_in_no_answer():
    spans = 0
    for seed in range(8):
        done = run(seed, make=Closed)
        assert done.violated is None, explain(seed, make=Closed)
        spans += done.world.checks.spans
    assert spans > 100


async def test_events_have_no_provisional_documents(tmp_path: Path):
    config = configured_modes(tmp_path, MODES + OFF)
    head = SimpleNamespace(final=0, closed=0)
    served: Any = SimpleNamespace(
        config=config,
        context=make_context(config, partitions=1),
        replicas=[SimpleNamespace(head=head, broken=None)],
    )
    feed = Feed(served, ComputeQueues())
    running = asyncio.create_task(feed.run())
    async with asyncio.timeout(10):
        await feed.changed.wait()
    running.cancel()
    assert feed.provisional(0) == []


def test_the_description_states_the_trust_assumption(tmp_path: Path):
    config = configured_modes(tmp_path, MODES + OFF)
    served: Any = SimpleNamespace(config=config, accepted=(), ready=True)
    assert any(TRUST in one for one in describe_collection(served).privacy.protected)
