"""Addresses, tokens and certificates are checked before anything is served."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientConnectorError, ClientSession

from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, GivenSecret
from ldpstream.agents.web import HttpUnavailableError
from ldpstream.agents.web.addresses import is_loopback
from ldpstream.agents.web.requests import Access, TokenError
from tests.certificates import make_certificates, skip_without_openssl
from tests.stream.asking import BEARER, TOKEN
from tests.stream.serving import CITY, Pipeline, serve


@pytest.mark.parametrize("token", ["short", "x" * 15, "with a space in the middle", "ü" * 20, ""])
def test_weak_tokens_are_refused_without_showing_them(token: str) -> None:
    with pytest.raises(TokenError) as refused:
        Access(token=token.encode())
    assert str(refused.value) == "expected at least 16 visible ASCII characters, no space"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True),
        ("[::1]", True), ("0.0.0.0", False), ("::", False), ("192.168.0.1", False),
        ("example.org", False), ("localhost.example.org", False),
    ],
)  # fmt: skip
def test_loopback_addresses_are_recognised(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


async def test_an_address_that_others_reach_needs_a_token(pipeline: Pipeline) -> None:
    with pytest.raises(HttpUnavailableError, match=r"worker\.token: expected a token, because"):
        async with serve(pipeline, host="0.0.0.0"):
            pass
    async with serve(pipeline, host="0.0.0.0", open_to_everybody=True) as url:
        port = url.rpartition(":")[2]
        async with ClientSession() as session:
            answer = await session.get(f"http://127.0.0.1:{port}/api/collections")
            assert answer.status == 200
    async with (
        serve(pipeline, host="0.0.0.0", token=GivenSecret(TOKEN)) as url,
        ClientSession(f"http://127.0.0.1:{url.rpartition(':')[2]}/") as session,
    ):
        assert (await session.get("api/collections")).status == 401
        assert (await session.get("api/collections", headers=BEARER)).status == 200


async def test_a_token_that_cannot_be_read_is_reported_at_the_start(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    short = tmp_path / "token"
    short.write_text("too-short\n")
    for secret, why in (
        (EnvironmentSecret("NOWHERE", {}), "expected the environment variable NOWHERE"),
        (FileSecret(tmp_path / "none"), f"cannot read {tmp_path}/none"),
        (FileSecret(short), "expected at least 16 visible ASCII characters"),
    ):
        with pytest.raises(HttpUnavailableError) as refused:
            async with serve(pipeline, token=secret):
                pass
        assert str(refused.value).startswith(f"worker.token: {why}")
        assert "too-short" not in str(refused.value)


@pytest.mark.slow
async def test_with_a_certificate_https_is_served(pipeline: Pipeline, tmp_path: Path) -> None:
    skip_without_openssl()
    made = make_certificates(tmp_path)
    both = made.broker
    trusting = ssl.create_default_context(cafile=made.authority)
    strange = ssl.create_default_context(cafile=made.stranger)
    token = GivenSecret(TOKEN)
    async with (
        serve(pipeline, token=token, certificate=both, key=both) as url,
        ClientSession() as session,
    ):
        assert url.startswith("https://127.0.0.1:")
        asked = f"{url}/api/collections"
        assert (await session.get(asked, ssl=trusting, headers=BEARER)).status == 200
        with pytest.raises(ClientConnectorError):
            await session.get(asked, ssl=strange, headers=BEARER)
    for pair, why in (
        ((both, tmp_path / "none"), f"worker.key: cannot read {tmp_path}/none: No such file"),
        ((tmp_path, both), f"worker.certificate: cannot read {tmp_path}: Is a directory"),
        ((made.client, made.client_key), "worker.certificate, worker.key: expected a chain"),
        ((both, made.client_key), "worker.certificate, worker.key: expected a chain"),
    ):
        with pytest.raises(HttpUnavailableError, match=why):
            async with serve(pipeline, certificate=pair[0], key=pair[1]):
                pass


def configured(worker: dict[str, Any], tmp_path: Path) -> Any:
    tables = {"worker": worker, "collection": {"city": CITY}}
    return read_config(tables, base=tmp_path, environment={"READ": TOKEN}).worker


def test_the_configuration_says_where_the_token_is(tmp_path: Path) -> None:
    assert configured({}, tmp_path).token is None
    found = configured({"token": {"env": "READ"}}, tmp_path)
    assert found.token.reveal() == TOKEN
    assert TOKEN not in repr(found)
    assert TOKEN not in repr(configured({"token": TOKEN}, tmp_path))
    for worker, path, problem in (
        ({"token": 7}, "worker.token", "expected a string, { env"),
        ({"token": {"env": "A", "file": "B"}}, "worker.token", "expected a string, { env"),
        ({"certificate": "a.pem"}, "worker.key", "expected certificate and key, or neither"),
        ({"key": "a.pem"}, "worker.certificate", "expected certificate and key, or neither"),
        ({"open_to_everybody": "yes"}, "worker.open_to_everybody", "expected true or false"),
    ):
        with pytest.raises(ConfigError) as refused:
            configured(worker, tmp_path)
        assert refused.value.path == path
        assert refused.value.problem.startswith(problem)
