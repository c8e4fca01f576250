"""A gateway for a collection with `one_report`: uploads keep their tokens, by partition."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.mechanisms import decode_frame
from tests.gateway.serving import NOW_MS, TABLES, gateway
from tests.processes import eventually

RULED: dict[str, Any] = {
    "ruled": TABLES["collection"]["modes"] | {"one_report": True, "partitions": 3}
}
SECRETS = [bytes([number]) * 16 for number in range(30)]


async def test_uploads_are_framed_by_the_partition_of_their_token(tmp_path: Path):
    async with gateway(tmp_path, collections=RULED, linger="1m") as running:
        spec = running.spec("ruled")
        frames = [spec.frame(["bus"], times_ms=[NOW_MS], secret=secret) for secret in SECRETS]
        posts = [asyncio.create_task(running.post(one, name="ruled")) for one in frames]
        await eventually(lambda: running.served.uploads.waiting == 30)
        await running.served.uploads.drain()
        assert await asyncio.gather(*posts) == [(200, {"accepted": 1})] * 30
        rule, found = spec.one_report, set()
        assert rule is not None
        for _, frame in running.broker.frames:
            decoded = decode_frame(
                frame, fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
            )
            _, tokens = spec.split(decoded.payload)
            assert set(rule.partition(tokens)) == {rule.frame_partition(frame)}
            found |= {bytes(token) for token in tokens}
        assert len(running.broker.frames) == 3
        times_ms = np.array([NOW_MS])
        assert found == {spec.tokens(secret, times_ms).tobytes() for secret in SECRETS}


async def test_uploads_of_several_partitions_and_without_tokens_are_refused(tmp_path: Path):
    async with gateway(tmp_path, collections=RULED) as running:
        spec = running.spec("ruled")
        frames = [spec.frame(["bus"], times_ms=[NOW_MS], secret=secret) for secret in SECRETS[:9]]
        count = len(frames).to_bytes(4, "little")
        both = frames[0][:20] + count + b"".join(frame[24:] for frame in frames)
        status, said = await running.post(both, name="ruled")
        assert (status, said["detail"]) == (400, "expected tokens of one partition")
        plain = frames[0][:24] + frames[0][24:-8]
        status, _ = await running.post(plain, name="ruled")
        assert status == 400
        status, _ = await running.post(running.frame(), name="ruled")
        assert status == 409
        assert not running.broker.frames
