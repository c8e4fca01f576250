"""The estimated cost of an answer bounds its memory; what costs too much is refused."""

import asyncio
import tracemalloc
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import write_document
from ldpstream.agents.web.computation import (
    ANSWERS_BYTES,
    CHEAP_BYTES,
    WAITING_LIMIT,
    ComputeQueues,
    answer_bytes,
    check_cost,
)
from ldpstream.agents.web.requests import AnswerError
from ldpstream.mechanisms.domains.queries import Linear, Range
from tests.property.documents import collection, totals

SIZE = 1_000_000
LARGE_SIZE = 200_000
LARGE: dict[str, dict[str, Any]] = {
    "block-hadamard": {"domain": {"size": LARGE_SIZE}},
    "blocks": {"mechanism": "block-hadamard", "domain": {"size": LARGE_SIZE, "blocks": 999}},
    "randomized-response": {"domain": {"size": LARGE_SIZE}},
    "projective-geometry": {"domain": {"size": 20_000}},
    "subset-selection": {"domain": {"size": LARGE_SIZE, "blocks": 100}},
    "l1-geometric": {"domain": {"size": LARGE_SIZE}},
    "tree": {"domain": {"size": 20_000}},
    "high-low": {"domain": {"size": LARGE_SIZE}, "sensitive": [1, 2]},
    "groups": {"domain": {"size": LARGE_SIZE}, "sensitive": [*range(2000)]},
}
DEAR: dict[str, Any] = {"method": "anytime", "simultaneous": True, "project": "blocks"}


def queries(kind: str, size: int) -> dict[str, Any]:
    if kind == "list":
        return {"top": 4_000, **DEAR}
    ranges = (Range("half", ((0, size // 2),)),)
    return {"top": 0, "ranges": ranges, "linear": (Linear("a", np.arange(size) / 7.0),)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["list", "both"])
@pytest.mark.parametrize("name", LARGE)
def test_an_answer_takes_no_more_than_its_estimated_cost(name: str, kind: str):
    config = collection({"mechanism": name, "epsilon": 1.0, **LARGE[name]})
    given = totals(config, 20)
    options = EstimateOptions(**queries(kind, config.spec.domain.size))
    said = answer_bytes(config.spec, options)
    tracemalloc.start()
    try:
        write_document(config, given, window=None, final=True, options=options)
        taken = tracemalloc.get_traced_memory()[1] + given.statistic.nbytes
    finally:
        tracemalloc.stop()
    assert taken <= said


@pytest.mark.slow
def test_a_document_of_a_million_values_is_small():
    config = collection({"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"size": SIZE}})
    given = totals(config, 20)
    _ = config.spec.mechanism.decoder
    options = EstimateOptions(ranges=(Range("half", ((0, SIZE // 2),)),))
    tracemalloc.start()
    try:
        write_document(config, given, window=None, final=True, options=options)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= 100 << 20


def test_an_answer_that_costs_too_much_is_refused_with_what_to_ask_instead():
    dear = EstimateOptions(top=20, linear=(Linear("a", np.ones(2)),))
    with pytest.raises(AnswerError) as caught:
        check_cost(2 * ANSWERS_BYTES, 0, dear)
    assert caught.value.status == 400
    assert str(caught.value) == (
        "this answer would take 4096 MiB of memory, more than 2048 MiB: ask for fewer "
        "linear queries or a smaller top or project=none"
    )
    check_cost(ANSWERS_BYTES, 0, dear)
    # A worker that publishes such documents has the memory for one.
    check_cost(2 * ANSWERS_BYTES, 2 * ANSWERS_BYTES, dear)


async def test_cheap_answers_do_not_wait_for_costly_ones_and_each_kind_keeps_its_order():
    computing = ComputeQueues()
    begun: list[int] = []
    ends = [asyncio.Event() for _ in range(4)]

    async def answer(number: int, cost_bytes: int) -> None:
        async with computing.turn(cost_bytes, 0):
            begun.append(number)
            await ends[number].wait()

    async def settled() -> list[int]:
        for _ in range(20):
            await asyncio.sleep(0)
        return begun

    costs = (ANSWERS_BYTES, CHEAP_BYTES + 1, CHEAP_BYTES, 1)
    tasks = [asyncio.create_task(answer(number, cost)) for number, cost in enumerate(costs)]
    assert await settled() == [0, 2]
    ends[2].set()
    assert await settled() == [0, 2, 3]
    ends[0].set()
    assert await settled() == [0, 2, 3, 1]
    ends[1].set()
    ends[3].set()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("cost_bytes", [1, ANSWERS_BYTES])
async def test_requests_beyond_the_queue_are_refused(cost_bytes: int):
    computing = ComputeQueues()
    async with computing.turn(cost_bytes, 0):

        async def waits() -> None:
            async with computing.turn(cost_bytes, 0):
                pass

        waiting = [asyncio.create_task(waits()) for _ in range(WAITING_LIMIT)]
        await asyncio.sleep(0)
        with pytest.raises(AnswerError) as caught:
            await waits()
        assert caught.value.status == 503
        # A request that gives up makes room.
        waiting.pop().cancel()
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(waits()))
    await asyncio.gather(*waiting)
