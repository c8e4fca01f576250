"""For devices and gateways: privatize, frame, produce. Guide: docs/devices.md."""

from ldpstream.agents.device.framer import Framer
from ldpstream.agents.device.gateway import Gateway
from ldpstream.agents.device.sender import Sender

__all__ = ["Framer", "Gateway", "Sender"]
