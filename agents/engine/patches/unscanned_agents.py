"""Add an agent to an app without having Faust read the caller's source.

`app.agent` registers each agent for a scan of modules, which takes some time for each of many.

Seen in Faust 0.15. `add_agent` changes nothing but the app that it is given.
"""

from collections.abc import Callable
from typing import Any

import faust


def add_agent(
    app: faust.App, channel: faust.Channel[Any], name: str, count_batches: Callable[[Any], Any]
) -> None:
    """Add an agent as `app.agent` does, without registering it for a scan of modules."""
    failed = app._on_agent_error  # noqa: SLF001 (what every agent of an app is given)
    agent = faust.Agent(count_batches, name=name, app=app, channel=channel, on_error=failed)
    app.agents[name] = agent
    app.topics.beacon.add(agent)
