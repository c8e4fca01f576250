"""For devices: privatize, frame, produce. Guide: docs/how-to/devices.md."""

from ldpstream.agents.edge.sender import Sender

__all__ = ["Sender"]
