"""For devices and gateways: privatize, frame, produce. Guide: docs/how-to/devices.md."""

from ldpstream.agents.edge.gateway import Framer, Gateway
from ldpstream.agents.edge.sender import Sender

__all__ = ["Framer", "Gateway", "Sender"]
