"""For devices and gateways: privatize, frame, produce. Guide: docs/devices.md."""

from ldpstream.agents.edge.framer import Framer
from ldpstream.agents.edge.gateway import Gateway
from ldpstream.agents.edge.sender import Sender

__all__ = ["Framer", "Gateway", "Sender"]
