"""Certificates of collections: proved once for each spec, off the event loop, and kept."""

import json
import time
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.privacy.year import certificate_with_year
from ldpstream.agents.web.computation import CHEAP_BYTES, ComputeQueues
from ldpstream.agents.web.requests import AnswerError
from ldpstream.agents.web.worker_process import AbortedError

LIMIT_SECONDS: Final = 30.0
"""How long one may take: costly answers of others wait meanwhile."""
_AGAIN_SECONDS: Final = 600.0
"""How long one that took too long or too much memory is refused without another try."""


@dataclass(frozen=True)
class Proof:
    """A collection's certificate, which depends on its configuration alone."""

    final: bool = False
    """Certificates are kept by themselves."""

    def tag(self, config: CollectionConfig) -> str:
        """Return the fingerprint of the spec that is proved."""
        return config.spec.fingerprint.hex()

    def body(self, config: CollectionConfig) -> bytes:
        """Return what `ldpstream certify` prints of the collection, as JSON."""
        return json.dumps(
            certificate_with_year(config), ensure_ascii=False, allow_nan=False
        ).encode()


class Certificates:
    """Certificates, each computed at the first request by the process for costly answers."""

    def __init__(self, queues: ComputeQueues) -> None:
        self._queues = queues
        self._proved: dict[tuple[str, bytes], bytes] = {}
        self._refused: dict[tuple[str, bytes], tuple[float, str]] = {}

    async def certificate(self, config: CollectionConfig) -> bytes:
        """Return what `ldpstream certify` prints of a collection."""
        key = config.name, config.spec.fingerprint
        if key in self._proved:
            return self._proved[key]
        self._check(key)
        costly = CHEAP_BYTES + 1
        async with self._queues.turn(costly, 0, limit_seconds=LIMIT_SECONDS) as compute:
            # Another request may have had it computed meanwhile.
            self._check(key)
            if key not in self._proved:
                try:
                    answer = await compute(config, Proof, frozenset())
                except AbortedError as error:
                    text = (
                        f"{config.name}: its proof was aborted ({error.reason}): run "
                        f"`ldpstream certify {config.name}`"
                    )
                    if error.by_limit:
                        self._refused[key] = time.monotonic() + _AGAIN_SECONDS, text
                    raise AnswerError(503, text) from error
                assert answer.body is not None
                self._proved[key] = answer.body
        return self._proved[key]

    def _check(self, key: tuple[str, bytes]) -> None:
        until, text = self._refused.get(key, (0.0, ""))
        if time.monotonic() < until:
            raise AnswerError(503, text)


CERTIFICATES: Final = web.AppKey("certificates", Certificates)
