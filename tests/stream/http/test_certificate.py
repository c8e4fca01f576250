"""Certificates over HTTP are those of `ldpstream certify`, proved once, and within a limit."""

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.document.answers import CollectionCertificate
from ldpstream.agents.web import build_http, certificates
from ldpstream.agents.web import computation as computing
from ldpstream.agents.web import worker_process as apart
from ldpstream.agents.web.computation import ComputeQueues
from ldpstream.agents.web.worker_process import AnswerProcess
from tests.processes import PATIENCE_SECONDS
from tests.stream.asking import CITY_PATH, Client, ask
from tests.stream.cli import configured, invoke
from tests.stream.serving import Pipeline, serve_collections

pytestmark = pytest.mark.slow
KINDS = """
[collection.places]
mechanism = "block-hadamard"
epsilon = 3.0
domain = { grid = [12, 35], blocks = [4, 5] }
spread = { reports = 4, horizon = "1d" }

[collection.smokers]
mechanism = "lip"
epsilon = 1.0
prior = { levels = 8 }
domain = { values = ["no", "yes"] }

[collection.homes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk"] }
hold = { windows = 91, epsilon = 2.0 }

[collection.ages]
mechanism = "l1-geometric"
epsilon = 0.2
domain = { size = 16 }

[collection.words]
mechanism = "block-hadamard"
epsilon = 3.0
domain = { words = { bits = 64, rounds = 8 } }

[collection.survey]
mechanism = "subset-selection"
epsilon = 1.0
domain = { attributes = { answer = { values = ["yes", "no"] }, home = { grid = [5, 2] } } }
"""
PATH = "/api/collections/city/certificate"


async def test_every_kind_is_answered_as_the_command_prints_it(tmp_path: Path) -> None:
    printed = json.loads(invoke("certify", "-c", configured(tmp_path, KINDS)).stdout)
    pipeline = serve_collections(tomllib.loads(KINDS)["collection"])
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for one in printed["collections"]:
            path = f"/api/collections/{one['collection']}/certificate"
            answer = await ask(client, path)
            assert answer == one
            assert await ask(client, f"{path}?fingerprint={one['fingerprint']}") == one
            assert CollectionCertificate.model_validate(answer).passed
            # Rounded up from the exact ratio, by less than the last digit.
            exact = max(float(loss["high"]) for loss in answer["losses"])
            assert 1.0 <= float(answer["factor"]) / 2.718281828459045**exact < 1.0001
            # Fifteen steps lie between the first of the ages and the last.
            steps = 15 if one["collection"] == "ages" else 1
            widest = max(float(loss["budget"]) for loss in answer["losses"]) * steps
            if one["collection"] != "smokers":
                assert 1.0 <= float(answer["largest_factor"]) / 2.718281828459045**widest < 1.0001
    extra = {"spread", "hold", "words", "attributes"}
    assert {key for one in printed["collections"] for key in one} > extra


async def test_it_is_of_the_spec_that_is_asked_for_and_proved_once(
    pipeline: Pipeline, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    city, ages = pipeline.collections["city"], pipeline.collections["ages"]
    city.accepted = (ages,)
    earlier = ages.config.spec.fingerprint.hex()
    assert (await ask(client, f"{PATH}?fingerprint={earlier}"))["fingerprint"] == earlier
    own = await ask(client, PATH)
    assert own["fingerprint"] == city.config.spec.fingerprint.hex()
    await ask(client, f"{PATH}?fingerprint=00", 400)
    monkeypatch.setattr(AnswerProcess, "body", None)
    assert await ask(client, PATH) == own


async def test_a_slow_proof_ends_and_is_not_begun_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "LIMIT_SECONDS", 0.0)
    refused = await ask(client, PATH, 503)
    assert refused["error"] == (
        "city: its proof was aborted (it takes longer than 0 s): run `ldpstream certify city`"
    )
    monkeypatch.setattr(AnswerProcess, "body", None)
    assert await ask(client, PATH, 503) == refused


async def test_after_a_while_a_proof_is_tried_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(certificates, "LIMIT_SECONDS", 0.0)
    await ask(client, PATH, 503)
    monkeypatch.setattr(certificates, "LIMIT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(AnswerProcess, "body", lambda *_, **__: b'{"pass": true}')
    assert (await ask(client, PATH))["pass"] is True


@pytest.mark.parametrize(
    ("program", "reason", "final"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9, Killed", True),
        ("import os; os.kill(os.getpid(), 15)", "was ended by signal 15, Terminated", False),
        ("raise SystemExit(3)", "ended with code 3", False),
        (None, "could not be started: No such file or directory", False),
    ],
)
async def test_a_proof_that_gives_no_answer_says_why_and_is_tried_again_unless_at_a_limit(
    client: Client, monkeypatch: pytest.MonkeyPatch, program: str | None, reason: str, final: bool
) -> None:
    with monkeypatch.context() as broken:
        if program is None:
            broken.setattr(apart.sys, "executable", "/nowhere/python")
        else:
            broken.setattr(apart, "_PROGRAM", program)
        refused = await ask(client, PATH, 503)
    told = f"city: its proof was aborted (its process {reason}): run `ldpstream certify city`"
    assert refused["error"] == told
    # What a process answers is shown above: here it is enough that it is asked.
    monkeypatch.setattr(AnswerProcess, "body", lambda *_, **__: b'{"pass": true}')
    assert await ask(client, PATH, 503 if final else 200) == (refused if final else {"pass": True})


async def test_a_proof_that_ends_costs_no_other_request_its_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = f"{CITY_PATH}?top=60"
    expected = await ask(client, estimate)
    computed: list[object] = []
    body = AnswerProcess.body

    def counted(self: AnswerProcess, *asked: Any, **limits: Any) -> bytes:
        computed.append(asked)
        return body(self, *asked, **limits)

    async def nothing(*_: object) -> int:
        return 0

    # Otherwise estimates are as cheap as the published document, and wait in the other queue.
    monkeypatch.setattr(ComputeQueues, "published_bytes", nothing)
    monkeypatch.setattr(computing, "CHEAP_BYTES", 0)
    monkeypatch.setattr(AnswerProcess, "body", counted)
    monkeypatch.setattr(certificates, "LIMIT_SECONDS", 0.0)
    _, *others = await asyncio.gather(
        ask(client, PATH, 503), ask(client, estimate + "&confidence=0.9"), ask(client, estimate)
    )
    assert [one["confidence"] for one in others] == [0.9, expected["confidence"]]
    assert others[1] == expected
    assert len(computed) == 3
