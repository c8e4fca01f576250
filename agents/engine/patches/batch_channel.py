"""A channel that carries batches to an agent, and the agent that counts them.

Faust's own `send` has to be awaited for each item, and `app.agent` registers each agent for a scan
of modules, which takes some time for each of many.

Seen in Faust 0.15. `add_agent` changes nothing but the app that it is given.
"""

from collections.abc import Callable
from typing import Any

import faust

from ldpstream.agents.engine.source import Batch


class BatchChannel(faust.Channel[Batch]):
    """Carries the batches of one collection to its agent; unbounded: the sender keeps it short."""

    @property
    def queue(self) -> Any:
        """The queue, created on first use and shared with the channel's readers."""
        if self._root is not None:
            return self._root.queue
        if self._queue is None:
            self._queue = self.app.FlowControlQueue(maxsize=0)
        return self._queue

    def send_batch(self, batch: Batch) -> None:
        """Append a batch, at once: Faust's own `send` has to be awaited."""
        self.queue.put_nowait(batch)

    def empty(self) -> bool:
        """Return whether it holds no batch."""
        return bool(self.queue.empty())


def add_agent(
    app: faust.App, channel: faust.Channel[Any], name: str, count_batches: Callable[[Any], Any]
) -> None:
    """Add an agent as `app.agent` does, without registering it for a scan of modules."""
    failed = app._on_agent_error  # noqa: SLF001 (what every agent of an app is given)
    agent = faust.Agent(count_batches, name=name, app=app, channel=channel, on_error=failed)
    app.agents[name] = agent
    app.topics.beacon.add(agent)
