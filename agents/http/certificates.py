"""Certificates of collections: proved once for each spec, off the event loop, and kept."""

import time
from typing import Final

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.compute_queue import ComputeQueues
from ldpstream.agents.http.job import Proof
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.http.question import CHEAP_BYTES

LIMIT_SECONDS: Final = 30.0
"""How long one may take: costly answers of others wait meanwhile."""
_AGAIN_SECONDS: Final = 600.0
"""How long one that was aborted is refused without another try."""


class Certificates:
    """The certificates that were asked for, from the process for costly answers."""

    def __init__(self, queues: ComputeQueues) -> None:
        self._queues = queues
        self._proved: dict[tuple[str, bytes], bytes] = {}
        self._refused: dict[tuple[str, bytes], float] = {}

    async def certificate(self, config: CollectionConfig) -> bytes:
        """Return what `ldpstream certify` prints of a collection.

        Raises:
            AnswerError: 503, where it takes longer than `LIMIT_SECONDS`, or too many are waiting.
        """
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
                except AnswerError:
                    self._refused[key] = time.monotonic() + _AGAIN_SECONDS
                    self._check(key)
                    raise
                assert answer.body is not None
                self._proved[key] = answer.body
        return self._proved[key]

    def _check(self, key: tuple[str, bytes]) -> None:
        if time.monotonic() < self._refused.get(key, 0.0):
            name, _ = key
            raise AnswerError(
                503,
                f"{name}: its proof takes longer than {LIMIT_SECONDS:g} s, or too much memory: run "
                f"`ldpstream certify {name}`",
            )
